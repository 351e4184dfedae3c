package io.esker.infinispan.configuration;

import org.infinispan.commons.configuration.io.ConfigurationWriter;
import org.infinispan.commons.util.Version;
import org.infinispan.configuration.serializing.ConfigurationSerializer;

/** Writes a container's defaults as the parser reads them. */
public class EskerDefaultsConfigurationSerializer implements ConfigurationSerializer<EskerDefaultsConfiguration> {
    /** {@inheritDoc} */
    @Override
    public void serialize(ConfigurationWriter writer, EskerDefaultsConfiguration configuration) {
        writer.writeStartElement(EskerElement.ESKER_DEFAULTS);
        writer.writeDefaultNamespace(EskerConfigurationParser.NAMESPACE + Version.getMajorMinor());
        configuration.attributes().write(writer);
        writer.writeEndElement();
    }
}
