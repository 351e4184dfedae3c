package io.esker.infinispan.configuration;

import io.esker.infinispan.EskerStore;
import org.infinispan.commons.configuration.BuiltBy;
import org.infinispan.commons.configuration.ConfigurationFor;
import org.infinispan.commons.configuration.attributes.AttributeDefinition;
import org.infinispan.commons.configuration.attributes.AttributeSet;
import org.infinispan.configuration.cache.AbstractStoreConfiguration;
import org.infinispan.configuration.cache.AsyncStoreConfiguration;
import org.infinispan.configuration.serializing.SerializedWith;

/** How one cache's {@link EskerStore} is configured. What it does not set comes from {@link EskerDefaultsConfiguration}. */
@ConfigurationFor(EskerStore.class)
@BuiltBy(EskerStoreConfigurationBuilder.class)
@SerializedWith(EskerStoreConfigurationSerializer.class)
public class EskerStoreConfiguration extends AbstractStoreConfiguration<EskerStoreConfiguration> {
    /** The directory below which each cache has one of its own; the container's persistent location when it is not set. */
    public static final AttributeDefinition<String> LOCATION =
            AttributeDefinition.builder("path", null, String.class).immutable().build();

    /** All attributes of a store, unset. */
    public static AttributeSet attributeDefinitionSet() {
        AttributeDefinition<?>[] options = EskerAttributes.all();
        AttributeDefinition<?>[] own = new AttributeDefinition<?>[options.length + 1];
        own[0] = LOCATION;
        System.arraycopy(options, 0, own, 1, options.length);
        return new AttributeSet(
                EskerStoreConfiguration.class, AbstractStoreConfiguration.attributeDefinitionSet(), own);
    }

    EskerStoreConfiguration(AttributeSet attributes, AsyncStoreConfiguration async) {
        super(EskerElement.ESKER_STORE, attributes, async);
    }

    /** The value of {@link #LOCATION}, or null. */
    public String location() {
        return attributes.attribute(LOCATION).get();
    }
}
