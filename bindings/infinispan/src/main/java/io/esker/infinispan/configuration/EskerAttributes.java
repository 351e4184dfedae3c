package io.esker.infinispan.configuration;

import java.util.List;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.commons.configuration.attributes.Attribute;
import org.infinispan.commons.configuration.attributes.AttributeDefinition;
import org.infinispan.commons.configuration.attributes.AttributeSet;
import org.infinispan.commons.configuration.attributes.AttributeValidator;

/**
 * The options that a store has of its own and takes from the container's {@code esker-defaults} where it does not set them.
 *
 * <p>Each is defined once, here, and is an attribute of both elements. They carry the names that Voldemort's LevelDB engine gave
 * them. Some mean nothing to Esker: they are accepted, so that a configuration can be carried over, and have no effect.
 */
public final class EskerAttributes {
    private static final int MAX_MEGABYTES = 1 << 20;

    /** Calls into the store that may run at once, but for walks; 0 sets no limit beside Infinispan's own pool of blocking threads. */
    public static final AttributeDefinition<Integer> POOL_SIZE = number("poolsize", 0, 0, 1024);
    /** Accepted without effect: every read is a get, which is the cheaper of the two. */
    public static final AttributeDefinition<Boolean> ITERATORS = flag("iterators", true);
    /**
     * Into how many groups keys are put; writes of one group follow each other, those of different groups run beside each
     * other.
     */
    public static final AttributeDefinition<Integer> STRIPES = number("stripes", 100, 1, 65_536);
    /** Whether the directory is made when there is none. */
    public static final AttributeDefinition<Boolean> CREATE_IF_MISSING = flag("createifmissing", true);
    /** Whether a store that exists is refused. */
    public static final AttributeDefinition<Boolean> ERROR_IF_EXISTS = flag("errorifexists", false);
    /** Whether everything is verified when the store is opened. */
    public static final AttributeDefinition<Boolean> PARANOID_CHECKS = flag("paranoidchecks", false);
    /** Megabytes for writes; what they and {@link #LRU_BLOCK_CACHE} add up to is the memory that the store may use. */
    public static final AttributeDefinition<Integer> WRITE_BUFFER_SIZE = number("writebuffer.size", 20, 1, MAX_MEGABYTES);
    /** Accepted without effect: a store needs some sixteen open files, whatever its size. */
    public static final AttributeDefinition<Integer> MAX_OPEN_FILE = number("maxopenfile", 1024, 0, Integer.MAX_VALUE);
    /** Megabytes for reads; see {@link #WRITE_BUFFER_SIZE}. */
    public static final AttributeDefinition<Integer> LRU_BLOCK_CACHE = number("lrublockcache", 300, 0, MAX_MEGABYTES);
    /** Bytes of the smallest block of a table: a multiple of 4096, at most 65536. */
    public static final AttributeDefinition<Integer> BLOCK_SIZE =
            AttributeDefinition.builder("blocksize", 4096).immutable().validator(EskerAttributes::checkBlockSize).build();
    /** Accepted without effect: blocks have no restart points to set. */
    public static final AttributeDefinition<Integer> BLOCK_RESTART_INTERVAL =
            number("blockrestartinterval", 16, 1, Integer.MAX_VALUE);
    /** How values are packed. */
    public static final AttributeDefinition<CompressionType> COMPRESSION_TYPE =
            AttributeDefinition.builder("compressiontype", CompressionType.LZ4)
                    .immutable()
                    .parser((type, text) -> CompressionType.parse(text))
                    .build();
    /** Accepted without effect: tables are mapped, and the kernel keeps what is read often. */
    public static final AttributeDefinition<Boolean> READ_FILL_CACHE = flag("read.fillcache", true);
    /** Accepted without effect: checksums are always verified when bytes are first read. */
    public static final AttributeDefinition<Boolean> READ_VERIFY_CHECKSUMS = flag("read.verifychecksums", false);
    /** Whether a write that returned survives a power cut, and not only the end of the process. */
    public static final AttributeDefinition<Boolean> WRITE_SYNC = flag("write.sync", false);

    static final List<AttributeDefinition<?>> ALL = List.of(POOL_SIZE, ITERATORS, STRIPES, CREATE_IF_MISSING, ERROR_IF_EXISTS,
            PARANOID_CHECKS, WRITE_BUFFER_SIZE, MAX_OPEN_FILE, LRU_BLOCK_CACHE, BLOCK_SIZE, BLOCK_RESTART_INTERVAL,
            COMPRESSION_TYPE, READ_FILL_CACHE, READ_VERIFY_CHECKSUMS, WRITE_SYNC);

    private EskerAttributes() {}

    static AttributeDefinition<?>[] all() {
        return ALL.toArray(new AttributeDefinition<?>[0]);
    }

    /** Checks every value that was set, and throws Infinispan's own kind of error for the first that is out of its bounds. */
    static void validate(AttributeSet attributes) {
        for (Attribute<?> attribute : attributes.attributes()) {
            attribute.validate();
        }
    }

    private static AttributeDefinition<Boolean> flag(String name, boolean byDefault) {
        return AttributeDefinition.builder(name, byDefault).immutable().build();
    }

    private static AttributeDefinition<Integer> number(String name, int byDefault, int from, int to) {
        AttributeValidator<Integer> inBounds = value -> {
            if (value == null || value < from || value > to) {
                throw new CacheConfigurationException(
                        "The Esker store's option '" + name + "' is " + value + "; it may be " + from + " to " + to);
            }
        };
        return AttributeDefinition.builder(name, byDefault).immutable().validator(inBounds).build();
    }

    private static void checkBlockSize(Integer bytes) {
        if (bytes == null || bytes < 4096 || bytes > 65_536 || bytes % 4096 != 0) {
            throw new CacheConfigurationException("The Esker store's option 'blocksize' is " + bytes
                    + "; it may be a multiple of 4096 up to 65536 (bytes)");
        }
    }
}
