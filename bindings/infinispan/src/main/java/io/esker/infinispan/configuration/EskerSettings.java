package io.esker.infinispan.configuration;

import io.esker.Durability;
import io.esker.Options;
import org.infinispan.commons.configuration.attributes.Attribute;
import org.infinispan.commons.configuration.attributes.AttributeDefinition;
import org.infinispan.commons.configuration.attributes.AttributeSet;
import org.infinispan.configuration.global.GlobalConfiguration;

/**
 * The options that count for one store: what the store sets, else what its container's {@code esker-defaults} set, else the
 * default.
 */
public final class EskerSettings {
    private final AttributeSet ofStore;
    private final AttributeSet ofContainer;

    private EskerSettings(AttributeSet ofStore, AttributeSet ofContainer) {
        this.ofStore = ofStore;
        this.ofContainer = ofContainer;
    }

    /** The settings of a store of this container. */
    public static EskerSettings of(EskerStoreConfiguration store, GlobalConfiguration container) {
        EskerDefaultsConfiguration defaults = container.module(EskerDefaultsConfiguration.class);
        return new EskerSettings(store.attributes(), defaults == null ? null : defaults.attributes());
    }

    /** The value that counts for an option of {@link EskerAttributes}. */
    public <T> T get(AttributeDefinition<T> option) {
        Attribute<T> own = ofStore.attribute(option);
        if (!own.isModified() && ofContainer != null && ofContainer.attribute(option).isModified()) {
            return ofContainer.attribute(option).get();
        }
        return own.get();
    }

    private boolean isSet(AttributeDefinition<?> option) {
        return ofStore.attribute(option).isModified()
                || ofContainer != null && ofContainer.attribute(option).isModified();
    }

    /**
     * The options that the directory is opened with. Write buffer and read cache are one budget, as the tables themselves are
     * mapped files; where neither is set, Esker's own default holds.
     */
    public Options toOptions() {
        Options options = new Options()
                .createIfMissing(get(EskerAttributes.CREATE_IF_MISSING))
                .errorIfExists(get(EskerAttributes.ERROR_IF_EXISTS))
                .paranoidChecks(get(EskerAttributes.PARANOID_CHECKS))
                .blockSize(get(EskerAttributes.BLOCK_SIZE))
                .compression(get(EskerAttributes.COMPRESSION_TYPE).compression())
                .durability(get(EskerAttributes.WRITE_SYNC) ? Durability.SYNCED : Durability.BUFFERED);
        if (isSet(EskerAttributes.WRITE_BUFFER_SIZE) || isSet(EskerAttributes.LRU_BLOCK_CACHE)) {
            options.memory(memoryBytes());
        }
        return options;
    }

    private long memoryBytes() {
        return ((long) get(EskerAttributes.WRITE_BUFFER_SIZE) + get(EskerAttributes.LRU_BLOCK_CACHE)) << 20;
    }
}
