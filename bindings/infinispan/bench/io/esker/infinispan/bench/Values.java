package io.esker.infinispan.bench;

import java.util.Random;

/** What the entries have: text of so many bytes, of which half can be packed, or records in JSON as Voldemort's document had them. */
final class Values {
    /** Of six entries two are larger, and four have 30 to 40 bytes. */
    private static final int[] JSON_BYTES = {1024, 600, 30, 33, 36, 40};
    private static final String[] FIELDS = {"name", "street", "city", "state", "note", "tag"};

    private final String what;
    /** 0 for JSON. */
    private final int bytes;

    /**
     * @param what a number of bytes, or {@code json}
     */
    Values(String what) {
        this.what = what;
        bytes = what.equals("json") ? 0 : Integer.parseInt(what);
    }

    /** As the lines of results have it. */
    String name() {
        return what;
    }

    /** A value for the entry of this number. */
    String of(int number, Random random) {
        return bytes == 0 ? json(JSON_BYTES[number % JSON_BYTES.length], random) : text(bytes, random);
    }

    private static String text(int bytes, Random random) {
        StringBuilder text = new StringBuilder(bytes);
        while (text.length() < bytes / 2) {
            text.append((char) (' ' + random.nextInt(95)));
        }
        return text.append("a".repeat(bytes - text.length())).toString();
    }

    private static String json(int bytes, Random random) {
        StringBuilder text = new StringBuilder(bytes).append("{\"id\":").append(random.nextInt(1_000_000));
        while (text.length() + 30 < bytes) {
            text.append(",\"").append(FIELDS[random.nextInt(FIELDS.length)]).append("\":\"")
                    .append(Integer.toString(random.nextInt(), Character.MAX_RADIX)).append('"');
        }
        return text.append(" ".repeat(Math.max(0, bytes - 1 - text.length()))).append('}').toString();
    }
}
