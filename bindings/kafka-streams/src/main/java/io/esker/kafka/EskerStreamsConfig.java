package io.esker.kafka;

import io.esker.Compression;
import io.esker.Options;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;

/**
 * The settings of Esker's stores. They are given among those of {@link org.apache.kafka.streams.StreamsConfig}, count for each
 * store of the application by itself, and take effect when a store is opened.
 *
 * <p>Memory is set for each store and not for the process: how many stores a process has changes with every rebalance, and a
 * store keeps the memory it was opened with.
 */
public final class EskerStreamsConfig {
    /** Native memory of each store for its own use, in bytes; from 1 MiB. A store with segments of time is one store. */
    public static final String MEMORY_BYTES_CONFIG = "esker.memory.bytes";
    /** The default of {@value #MEMORY_BYTES_CONFIG}: 16 MiB. */
    public static final long MEMORY_BYTES_DEFAULT = 16L << 20;

    /**
     * How many bytes of writes each store holds on the heap for the next commit; from 64 KiB. When there are more they are written
     * without the offsets.
     */
    public static final String UNCOMMITTED_BYTES_CONFIG = "esker.uncommitted.bytes";
    /** The default of {@value #UNCOMMITTED_BYTES_CONFIG}: 8 MiB. */
    public static final long UNCOMMITTED_BYTES_DEFAULT = 8L << 20;

    /** How values are packed: {@code none}, {@code lz4} or {@code zstd}. */
    public static final String COMPRESSION_CONFIG = "esker.compression";
    /** The default of {@value #COMPRESSION_CONFIG}. */
    public static final String COMPRESSION_DEFAULT = "lz4";

    private static final String PREFIX = "esker.";

    private static final ConfigDef DEFINITION = new ConfigDef()
            .define(MEMORY_BYTES_CONFIG, ConfigDef.Type.LONG, MEMORY_BYTES_DEFAULT, ConfigDef.Range.atLeast(1L << 20),
                    ConfigDef.Importance.MEDIUM, "Native memory of each store for its own use, in bytes.")
            .define(UNCOMMITTED_BYTES_CONFIG, ConfigDef.Type.LONG, UNCOMMITTED_BYTES_DEFAULT, ConfigDef.Range.between(64L << 10, 1L << 30),
                    ConfigDef.Importance.MEDIUM, "Bytes of writes that each store holds on the heap for the next commit.")
            .define(COMPRESSION_CONFIG, ConfigDef.Type.STRING, COMPRESSION_DEFAULT,
                    ConfigDef.CaseInsensitiveValidString.in("none", "lz4", "zstd"),
                    ConfigDef.Importance.LOW, "How values are packed: none, lz4 or zstd.");

    private final long memoryBytes;
    private final long uncommittedBytes;
    private final Compression compression;

    /**
     * Reads the settings.
     *
     * @param configs all settings of the application; those that do not begin with {@code esker.} are left alone
     * @throws ConfigException if one that begins so is not known, or has a value out of its bounds
     */
    EskerStreamsConfig(Map<String, ?> configs) {
        for (String name : configs.keySet()) {
            if (name.startsWith(PREFIX) && !DEFINITION.names().contains(name)) {
                List<String> known = new ArrayList<>(DEFINITION.names());
                known.sort(null);
                throw new ConfigException("Unknown configuration " + name + ". Those of Esker's stores are " + String.join(", ", known) + ".");
            }
        }
        Map<String, Object> values = DEFINITION.parse(configs);
        memoryBytes = (Long) values.get(MEMORY_BYTES_CONFIG);
        uncommittedBytes = (Long) values.get(UNCOMMITTED_BYTES_CONFIG);
        compression = Compression.valueOf(((String) values.get(COMPRESSION_CONFIG)).toUpperCase(Locale.ROOT));
    }

    long uncommittedBytes() {
        return uncommittedBytes;
    }

    /** What the store is opened with. */
    Options options() {
        return new Options().memory(memoryBytes).compression(compression);
    }
}
