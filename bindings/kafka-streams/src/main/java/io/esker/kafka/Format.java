package io.esker.kafka;

import java.util.function.UnaryOperator;

import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;

/** What the bytes of a value are. Later constants hold more; a store is taken to a later one when it is opened, never back. */
enum Format {
    /** The serialized value. */
    PLAIN,
    /** A timestamp of 8 bytes, then the serialized value. */
    TIMESTAMPED,
    /** Length of the headers, headers, and what the format before had. */
    HEADERS;

    /** The end of the names of keyspaces whose values are of this format. */
    String suffix() {
        return "." + name().toLowerCase(java.util.Locale.ROOT);
    }

    /** The name of a keyspace of this format without the end that says so. */
    String without(String keyspace) {
        return keyspace.substring(0, keyspace.length() - suffix().length());
    }

    /**
     * What makes values of this format of those of an older one.
     *
     * @param sessions whether the store holds sessions, whose values never have timestamps
     */
    UnaryOperator<byte[]> from(Format older, boolean sessions) {
        if (this == TIMESTAMPED) return TimestampedBytesStore::convertToTimestampedFormat;
        return older == PLAIN && !sessions
                ? HeadersBytesStore::convertFromPlainToHeaderFormat
                : HeadersBytesStore::convertToHeaderFormat;
    }
}
