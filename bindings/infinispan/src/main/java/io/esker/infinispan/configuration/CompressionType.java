package io.esker.infinispan.configuration;

import io.esker.Compression;
import java.util.Locale;

/** How the values of a cache are packed on disk. Keys and large values, which stay in the log, are not packed. */
public enum CompressionType {
    /** Not at all. */
    NONE(Compression.NONE),
    /** With LZ4. */
    LZ4(Compression.LZ4),
    /** With Zstandard, which packs tighter and takes longer. */
    ZSTD(Compression.ZSTD);

    private final Compression compression;

    CompressionType(Compression compression) {
        this.compression = compression;
    }

    Compression compression() {
        return compression;
    }

    /**
     * Reads a setting: a name of this enum in any case, or LevelDB's numbers, 0 for none and 1 for snappy. Snappy, by number or
     * name, is taken for LZ4, which does its work here.
     *
     * @throws IllegalArgumentException when it is none of these
     */
    public static CompressionType parse(String text) {
        switch (text.trim().toUpperCase(Locale.ROOT)) {
            case "0":
            case "NONE":
                return NONE;
            case "1":
            case "SNAPPY":
            case "LZ4":
                return LZ4;
            case "ZSTD":
                return ZSTD;
            default:
                throw new IllegalArgumentException("compressiontype is one of NONE (0), LZ4 (1, SNAPPY) and ZSTD");
        }
    }
}
