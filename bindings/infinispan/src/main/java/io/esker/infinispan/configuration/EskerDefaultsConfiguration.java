package io.esker.infinispan.configuration;

import org.infinispan.commons.configuration.BuiltBy;
import org.infinispan.commons.configuration.attributes.AttributeSet;
import org.infinispan.configuration.serializing.SerializedWith;

/** Options that the Esker stores of a container take where they do not set them. */
@BuiltBy(EskerDefaultsConfigurationBuilder.class)
@SerializedWith(EskerDefaultsConfigurationSerializer.class)
public class EskerDefaultsConfiguration {
    private final AttributeSet attributes;

    static AttributeSet attributeDefinitionSet() {
        return new AttributeSet(EskerDefaultsConfiguration.class, EskerAttributes.all());
    }

    EskerDefaultsConfiguration(AttributeSet attributes) {
        this.attributes = attributes;
    }

    /** What is set. */
    public AttributeSet attributes() {
        return attributes;
    }

    /** {@inheritDoc} */
    @Override
    public boolean equals(Object other) {
        return other instanceof EskerDefaultsConfiguration
                && attributes.equals(((EskerDefaultsConfiguration) other).attributes);
    }

    /** {@inheritDoc} */
    @Override
    public int hashCode() {
        return attributes.hashCode();
    }

    /** {@inheritDoc} */
    @Override
    public String toString() {
        return "EskerDefaultsConfiguration" + attributes;
    }
}
