package io.esker.infinispan.configuration;

import java.util.Properties;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.commons.configuration.Combine;
import org.infinispan.configuration.cache.AbstractStoreConfiguration;
import org.infinispan.configuration.cache.AbstractStoreConfigurationBuilder;
import org.infinispan.configuration.cache.PersistenceConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.persistence.PersistenceUtil;

/**
 * Adds an Esker store to a cache: {@code persistence().addStore(EskerStoreConfigurationBuilder.class)}.
 */
public class EskerStoreConfigurationBuilder
        extends AbstractStoreConfigurationBuilder<EskerStoreConfiguration, EskerStoreConfigurationBuilder>
        implements EskerOptionsBuilder<EskerStoreConfigurationBuilder> {

    /** Infinispan calls this. */
    public EskerStoreConfigurationBuilder(PersistenceConfigurationBuilder builder) {
        super(builder, EskerStoreConfiguration.attributeDefinitionSet());
    }

    /** Sets the directory below which each cache has one of its own: absolute, or below the container's persistent location. */
    public EskerStoreConfigurationBuilder location(String directory) {
        attributes.attribute(EskerStoreConfiguration.LOCATION).set(directory);
        return this;
    }

    /** {@inheritDoc} */
    @Override
    public void validate() {
        super.validate();
        EskerAttributes.validate(attributes);
        Properties properties = attributes.attribute(AbstractStoreConfiguration.PROPERTIES).get();
        if (properties != null && !properties.isEmpty()) {
            throw new CacheConfigurationException("The Esker store takes no properties, and was given "
                    + properties.stringPropertyNames() + "; its options are attributes");
        }
    }

    /** {@inheritDoc} */
    @Override
    public void validate(GlobalConfiguration container) {
        PersistenceUtil.validateGlobalStateStoreLocation(container, EskerStoreConfiguration.class.getSimpleName(),
                attributes.attribute(EskerStoreConfiguration.LOCATION));
        super.validate(container);
    }

    /** {@inheritDoc} */
    @Override
    public EskerStoreConfiguration create() {
        return new EskerStoreConfiguration(attributes.protect(), async.create());
    }

    /** {@inheritDoc} */
    @Override
    public EskerStoreConfigurationBuilder read(EskerStoreConfiguration template, Combine combine) {
        super.read(template, combine);
        return this;
    }

    /** {@inheritDoc} */
    @Override
    public EskerStoreConfigurationBuilder self() {
        return this;
    }
}
