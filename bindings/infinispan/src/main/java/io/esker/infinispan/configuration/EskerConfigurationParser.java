package io.esker.infinispan.configuration;

import org.infinispan.commons.configuration.attributes.Attribute;
import org.infinispan.commons.configuration.attributes.AttributeSet;
import org.infinispan.commons.configuration.io.ConfigurationReader;
import org.infinispan.commons.configuration.io.ConfigurationReaderException;
import org.infinispan.configuration.parsing.CacheParser;
import org.infinispan.configuration.parsing.ConfigurationBuilderHolder;
import org.infinispan.configuration.parsing.ConfigurationParser;
import org.infinispan.configuration.parsing.Namespace;
import org.infinispan.configuration.parsing.ParseUtils;
import org.infinispan.configuration.parsing.Parser;
import org.infinispan.configuration.parsing.ParserScope;

/** Reads {@code esker-store} and {@code esker-defaults} from XML, JSON and YAML. */
@Namespace(root = "esker-store")
@Namespace(uri = EskerConfigurationParser.NAMESPACE + "*", root = "esker-store", since = "16.0")
@Namespace(root = "esker-defaults")
@Namespace(uri = EskerConfigurationParser.NAMESPACE + "*", root = "esker-defaults", since = "16.0")
public class EskerConfigurationParser implements ConfigurationParser {
    static final String NAMESPACE = Parser.NAMESPACE + "store:esker:";

    /** {@inheritDoc} */
    @Override
    public void readElement(ConfigurationReader reader, ConfigurationBuilderHolder holder) {
        if (EskerElement.ESKER_STORE.toString().equals(reader.getLocalName())
                && holder.getCurrentConfigurationBuilder() != null) {
            readStore(reader, holder.getCurrentConfigurationBuilder().persistence()
                    .addStore(EskerStoreConfigurationBuilder.class));
        } else if (EskerElement.ESKER_DEFAULTS.toString().equals(reader.getLocalName())
                && (holder.inScope(ParserScope.CACHE_CONTAINER) || holder.inScope(ParserScope.GLOBAL))) {
            readDefaults(reader, holder.getGlobalConfigurationBuilder().addModule(EskerDefaultsConfigurationBuilder.class));
        } else {
            throw ParseUtils.unexpectedElement(reader);
        }
    }

    private static void readStore(ConfigurationReader reader, EskerStoreConfigurationBuilder builder) {
        String path = null;
        String relativeTo = null;
        for (int i = 0; i < reader.getAttributeCount(); i++) {
            ParseUtils.requireNoNamespaceAttribute(reader, i);
            String name = reader.getAttributeName(i);
            if (name.equals("path")) {
                path = reader.getAttributeValue(i);
            } else if (name.equals("relative-to")) {
                relativeTo = ParseUtils.requireAttributeProperty(reader, i);
            } else if (!readOption(reader, i, builder.attributes())) {
                readCommonAttribute(reader, i, builder);
            }
        }
        path = ParseUtils.resolvePath(path, relativeTo);
        if (path != null) {
            builder.location(path);
        }
        while (reader.inTag()) {
            CacheParser.parseStoreElement(reader, builder);
        }
    }

    private static void readDefaults(ConfigurationReader reader, EskerDefaultsConfigurationBuilder builder) {
        for (int i = 0; i < reader.getAttributeCount(); i++) {
            ParseUtils.requireNoNamespaceAttribute(reader, i);
            if (!readOption(reader, i, builder.attributes())) {
                throw unknown(reader, i, "");
            }
        }
        ParseUtils.requireNoContent(reader);
    }

    /** Sets an option of {@link EskerAttributes}; false when the attribute is none of them. */
    private static boolean readOption(ConfigurationReader reader, int index, AttributeSet attributes) {
        String name = reader.getAttributeName(index);
        if (EskerAttributes.ALL.stream().noneMatch(option -> option.name().equals(name))) {
            return false;
        }
        Attribute<?> attribute = attributes.attribute(name);
        String value = reader.getAttributeValue(index);
        try {
            attribute.fromString(value);
        } catch (IllegalArgumentException e) {
            throw new ConfigurationReaderException(
                    reader.getLocalName() + ": '" + value + "' is no value for '" + name + "': " + e.getMessage() + " ",
                    reader.getLocation());
        }
        return true;
    }

    private static void readCommonAttribute(ConfigurationReader reader, int index, EskerStoreConfigurationBuilder builder) {
        try {
            CacheParser.parseStoreAttribute(reader, index, builder);
        } catch (ConfigurationReaderException e) {
            throw unknown(reader, index, "path, relative-to, what every store has, ");
        }
    }

    private static ConfigurationReaderException unknown(ConfigurationReader reader, int index, String alsoKnown) {
        StringBuilder known = new StringBuilder(alsoKnown);
        String separator = "";
        for (var option : EskerAttributes.ALL) {
            known.append(separator).append(option.name());
            separator = ", ";
        }
        return new ConfigurationReaderException(reader.getLocalName() + " has no attribute '"
                + reader.getAttributeName(index) + "'; it has " + known + " ", reader.getLocation());
    }

    /** {@inheritDoc} */
    @Override
    public Namespace[] getNamespaces() {
        return ParseUtils.getNamespaceAnnotations(getClass());
    }
}
