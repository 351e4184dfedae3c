package io.esker.infinispan.configuration;

import org.infinispan.commons.configuration.io.ConfigurationWriter;
import org.infinispan.commons.util.Version;
import org.infinispan.configuration.serializing.AbstractStoreSerializer;
import org.infinispan.configuration.serializing.ConfigurationSerializer;

/** Writes a store's configuration as the parser reads it. */
public class EskerStoreConfigurationSerializer extends AbstractStoreSerializer
        implements ConfigurationSerializer<EskerStoreConfiguration> {
    /** {@inheritDoc} */
    @Override
    public void serialize(ConfigurationWriter writer, EskerStoreConfiguration configuration) {
        writer.writeStartElement(EskerElement.ESKER_STORE);
        writer.writeDefaultNamespace(EskerConfigurationParser.NAMESPACE + Version.getMajorMinor());
        configuration.attributes().write(writer);
        writeCommonStoreSubAttributes(writer, configuration);
        writeCommonStoreElements(writer, configuration);
        writer.writeEndElement();
    }
}
