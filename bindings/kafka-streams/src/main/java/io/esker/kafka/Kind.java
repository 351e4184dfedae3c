package io.esker.kafka;

import java.util.List;
import java.util.Locale;

/** What a store keeps, by which its keyspaces and keys are made. */
enum Kind {
    VALUES, VERSIONS, WINDOWS, SESSIONS;

    /** How a store notes it. */
    String noted() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** What the keyspaces of a store say that has noted none, as of before that was done; null where they do not tell. */
    static Kind of(List<String> keyspaces) {
        if (keyspaces.stream().anyMatch(name -> name.startsWith("latest."))) return VERSIONS;
        if (keyspaces.stream().anyMatch(name -> name.startsWith("values."))) return VALUES;
        return null; // windows and sessions look alike
    }
}
