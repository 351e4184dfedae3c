package io.esker;

/** How values are compressed in tables. The log, and the large values that stay in it, are not compressed. */
public enum Compression {
    /** Not at all. */
    NONE,
    /** LZ4, value by value, with a dictionary for each table where one pays. */
    LZ4,
    /** Zstandard, in the same way: smaller, and slower to read and write. */
    ZSTD
}
