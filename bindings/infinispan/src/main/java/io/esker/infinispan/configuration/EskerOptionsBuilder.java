package io.esker.infinispan.configuration;

import org.infinispan.commons.configuration.attributes.AttributeSet;

/**
 * The setters of the options in {@link EskerAttributes}, shared by the builder of a store and by that of the container's
 * defaults. Values are checked when the configuration is validated.
 *
 * @param <S> the builder itself
 */
public interface EskerOptionsBuilder<S> {
    /** What is set. */
    AttributeSet attributes();

    /** This builder. */
    S self();

    /** Sets {@link EskerAttributes#POOL_SIZE}. */
    default S poolSize(int calls) {
        attributes().attribute(EskerAttributes.POOL_SIZE).set(calls);
        return self();
    }

    /** Sets {@link EskerAttributes#ITERATORS}, which has no effect. */
    default S iterators(boolean yes) {
        attributes().attribute(EskerAttributes.ITERATORS).set(yes);
        return self();
    }

    /** Sets {@link EskerAttributes#STRIPES}. */
    default S stripes(int groups) {
        attributes().attribute(EskerAttributes.STRIPES).set(groups);
        return self();
    }

    /** Sets {@link EskerAttributes#CREATE_IF_MISSING}. */
    default S createIfMissing(boolean yes) {
        attributes().attribute(EskerAttributes.CREATE_IF_MISSING).set(yes);
        return self();
    }

    /** Sets {@link EskerAttributes#ERROR_IF_EXISTS}. */
    default S errorIfExists(boolean yes) {
        attributes().attribute(EskerAttributes.ERROR_IF_EXISTS).set(yes);
        return self();
    }

    /** Sets {@link EskerAttributes#PARANOID_CHECKS}. */
    default S paranoidChecks(boolean yes) {
        attributes().attribute(EskerAttributes.PARANOID_CHECKS).set(yes);
        return self();
    }

    /** Sets {@link EskerAttributes#WRITE_BUFFER_SIZE}. */
    default S writeBufferSize(int megabytes) {
        attributes().attribute(EskerAttributes.WRITE_BUFFER_SIZE).set(megabytes);
        return self();
    }

    /** Sets {@link EskerAttributes#MAX_OPEN_FILE}, which has no effect. */
    default S maxOpenFile(int files) {
        attributes().attribute(EskerAttributes.MAX_OPEN_FILE).set(files);
        return self();
    }

    /** Sets {@link EskerAttributes#LRU_BLOCK_CACHE}. */
    default S lruBlockCache(int megabytes) {
        attributes().attribute(EskerAttributes.LRU_BLOCK_CACHE).set(megabytes);
        return self();
    }

    /** Sets {@link EskerAttributes#BLOCK_SIZE}. */
    default S blockSize(int bytes) {
        attributes().attribute(EskerAttributes.BLOCK_SIZE).set(bytes);
        return self();
    }

    /** Sets {@link EskerAttributes#BLOCK_RESTART_INTERVAL}, which has no effect. */
    default S blockRestartInterval(int keys) {
        attributes().attribute(EskerAttributes.BLOCK_RESTART_INTERVAL).set(keys);
        return self();
    }

    /** Sets {@link EskerAttributes#COMPRESSION_TYPE}. */
    default S compressionType(CompressionType type) {
        attributes().attribute(EskerAttributes.COMPRESSION_TYPE).set(type);
        return self();
    }

    /** Sets {@link EskerAttributes#READ_FILL_CACHE}, which has no effect. */
    default S readFillCache(boolean yes) {
        attributes().attribute(EskerAttributes.READ_FILL_CACHE).set(yes);
        return self();
    }

    /** Sets {@link EskerAttributes#READ_VERIFY_CHECKSUMS}, which has no effect. */
    default S readVerifyChecksums(boolean yes) {
        attributes().attribute(EskerAttributes.READ_VERIFY_CHECKSUMS).set(yes);
        return self();
    }

    /** Sets {@link EskerAttributes#WRITE_SYNC}. */
    default S writeSync(boolean yes) {
        attributes().attribute(EskerAttributes.WRITE_SYNC).set(yes);
        return self();
    }
}
