package io.esker.infinispan.configuration;

import org.infinispan.commons.configuration.Builder;
import org.infinispan.commons.configuration.Combine;
import org.infinispan.commons.configuration.attributes.AttributeSet;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;

/**
 * Sets what the Esker stores of a container take where they do not say themselves:
 * {@code GlobalConfigurationBuilder.addModule(EskerDefaultsConfigurationBuilder.class)}.
 */
public class EskerDefaultsConfigurationBuilder
        implements Builder<EskerDefaultsConfiguration>, EskerOptionsBuilder<EskerDefaultsConfigurationBuilder> {
    private final AttributeSet attributes = EskerDefaultsConfiguration.attributeDefinitionSet();

    /** Infinispan calls this. */
    public EskerDefaultsConfigurationBuilder(GlobalConfigurationBuilder container) {}

    /** {@inheritDoc} */
    @Override
    public AttributeSet attributes() {
        return attributes;
    }

    /** {@inheritDoc} */
    @Override
    public EskerDefaultsConfigurationBuilder self() {
        return this;
    }

    /** {@inheritDoc} */
    @Override
    public void validate() {
        EskerAttributes.validate(attributes);
    }

    /** {@inheritDoc} */
    @Override
    public EskerDefaultsConfiguration create() {
        return new EskerDefaultsConfiguration(attributes.protect());
    }

    /** {@inheritDoc} */
    @Override
    public EskerDefaultsConfigurationBuilder read(EskerDefaultsConfiguration template, Combine combine) {
        attributes.read(template.attributes(), combine);
        return this;
    }
}
