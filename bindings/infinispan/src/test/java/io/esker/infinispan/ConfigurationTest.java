package io.esker.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertTrue;
import static org.testng.Assert.expectThrows;

import io.esker.infinispan.configuration.CompressionType;
import io.esker.infinispan.configuration.EskerAttributes;
import io.esker.infinispan.configuration.EskerDefaultsConfigurationBuilder;
import io.esker.infinispan.configuration.EskerSettings;
import io.esker.infinispan.configuration.EskerStoreConfiguration;
import io.esker.infinispan.configuration.EskerStoreConfigurationBuilder;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import javax.xml.XMLConstants;
import javax.xml.transform.stream.StreamSource;
import javax.xml.validation.SchemaFactory;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.commons.configuration.io.ConfigurationReaderException;
import org.infinispan.commons.configuration.io.ConfigurationResourceResolvers;
import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.configuration.parsing.ConfigurationBuilderHolder;
import org.infinispan.configuration.parsing.ParserRegistry;
import org.testng.annotations.Test;
import org.xml.sax.SAXException;

/** Options by builder, XML, JSON and YAML: what counts, and what is said about wrong ones. */
@Test
public class ConfigurationTest {
    /** As in Voldemort's document. */
    private static final List<String> OPTIONS = List.of("poolsize", "iterators", "stripes", "createifmissing", "errorifexists",
            "paranoidchecks", "writebuffer.size", "maxopenfile", "lrublockcache", "blocksize", "blockrestartinterval",
            "compressiontype", "read.fillcache", "read.verifychecksums", "write.sync");
    private static final String XML = """
            <infinispan><cache-container>
              <esker-defaults xmlns="urn:infinispan:config:store:esker:16.0" writebuffer.size="32" stripes="7" write.sync="true"/>
              <local-cache name="trees"><persistence>
                <esker-store xmlns="urn:infinispan:config:store:esker:16.0" path="/data" write.sync="false" lrublockcache="64"
                             compressiontype="1" purge="false"/>
              </persistence></local-cache>
            </cache-container></infinispan>""";
    private static final String JSON = """
            {"infinispan": {"cache-container": {
              "esker-defaults": {"writebuffer.size": 32, "stripes": 7, "write.sync": true},
              "caches": {"trees": {"local-cache": {"persistence": {
                "esker-store": {"path": "/data", "write.sync": false, "lrublockcache": 64, "compressiontype": "1", "purge": false}
              }}}}
            }}}""";
    private static final String YAML = """
            infinispan:
              cacheContainer:
                eskerDefaults:
                  writebuffer.size: 32
                  stripes: 7
                  write.sync: true
                caches:
                  trees:
                    localCache:
                      persistence:
                        eskerStore:
                          path: "/data"
                          write.sync: false
                          lrublockcache: 64
                          compressiontype: "1"
                          purge: false
            """;

    private static ConfigurationBuilderHolder parse(String text, MediaType type) {
        return new ParserRegistry().parse(
                new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8)), ConfigurationResourceResolvers.DEFAULT, type);
    }

    private static EskerSettings settings(ConfigurationBuilderHolder parsed) {
        Configuration cache = parsed.getNamedConfigurationBuilders().get("trees").build();
        return EskerSettings.of((EskerStoreConfiguration) cache.persistence().stores().get(0),
                parsed.getGlobalConfigurationBuilder().build());
    }

    private static EskerSettings settings(
            Consumer<EskerDefaultsConfigurationBuilder> container, Consumer<EskerStoreConfigurationBuilder> store) {
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder();
        container.accept(global.addModule(EskerDefaultsConfigurationBuilder.class));
        ConfigurationBuilder cache = new ConfigurationBuilder();
        store.accept(cache.persistence().addStore(EskerStoreConfigurationBuilder.class).location("/data"));
        return EskerSettings.of((EskerStoreConfiguration) cache.build().persistence().stores().get(0), global.build());
    }

    public void theStoreGoesBeforeTheContainerAndThatBeforeTheDefault() {
        for (EskerSettings settings : List.of(settings(parse(XML, MediaType.APPLICATION_XML)),
                settings(parse(JSON, MediaType.APPLICATION_JSON)), settings(parse(YAML, MediaType.APPLICATION_YAML)),
                settings(container -> container.writeBufferSize(32).stripes(7).writeSync(true),
                        store -> store.writeSync(false).lruBlockCache(64).compressionType(CompressionType.LZ4)))) {
            assertEquals(settings.get(EskerAttributes.WRITE_SYNC), Boolean.FALSE, "the store says so");
            assertEquals(settings.get(EskerAttributes.LRU_BLOCK_CACHE), Integer.valueOf(64), "the store says so");
            assertEquals(settings.get(EskerAttributes.STRIPES), Integer.valueOf(7), "the container says so");
            assertEquals(settings.get(EskerAttributes.WRITE_BUFFER_SIZE), Integer.valueOf(32), "the container says so");
            assertEquals(settings.get(EskerAttributes.BLOCK_SIZE), Integer.valueOf(4096), "nobody says");
            assertEquals(settings.get(EskerAttributes.COMPRESSION_TYPE), CompressionType.LZ4);
        }
    }

    public void aContainerWithoutDefaultsHasThoseOfTheOptions() {
        GlobalConfiguration global = new GlobalConfigurationBuilder().build();
        ConfigurationBuilder cache = new ConfigurationBuilder();
        cache.persistence().addStore(EskerStoreConfigurationBuilder.class).location("/data");
        EskerSettings settings =
                EskerSettings.of((EskerStoreConfiguration) cache.build().persistence().stores().get(0), global);
        assertEquals(settings.get(EskerAttributes.STRIPES), Integer.valueOf(100));
        assertEquals(settings.get(EskerAttributes.WRITE_BUFFER_SIZE), Integer.valueOf(20));
        assertTrue(settings.get(EskerAttributes.CREATE_IF_MISSING));
        assertFalse(settings.get(EskerAttributes.WRITE_SYNC));
    }

    public void anUnknownOptionIsNamedBesideThoseThatThereAre() {
        for (String wrong : List.of(XML.replace("lrublockcache", "lrublokcache"), XML.replace("stripes", "stripe"))) {
            RuntimeException refused =
                    expectThrows(RuntimeException.class, () -> parse(wrong, MediaType.APPLICATION_XML));
            String all = Caches.messages(refused);
            assertTrue(all.contains(ConfigurationReaderException.class.getName())
                    || all.contains(CacheConfigurationException.class.getName()), all);
            assertTrue(all.contains("has no attribute"), all);
            assertTrue(all.contains("writebuffer.size"), all);
        }
    }

    public void aValueThatIsNoneIsRefused() {
        for (String wrong : List.of(XML.replace("\"64\"", "\"much\""), XML.replace("\"64\"", "\"-1\""),
                XML.replace("compressiontype=\"1\"", "compressiontype=\"7\""), XML.replace("stripes=\"7\"", "stripes=\"0\""),
                XML.replace("write.sync=\"false\"", "write.sync=\"perhaps\""))) {
            RuntimeException refused = expectThrows(RuntimeException.class, () -> {
                ConfigurationBuilderHolder parsed = parse(wrong, MediaType.APPLICATION_XML);
                settings(parsed);
            });
            assertTrue(refused.getClass().getName().startsWith("org.infinispan."), Caches.messages(refused));
        }
    }

    public void valuesOutOfBoundsAndPropertiesAreRefusedByTheBuilder() {
        List<Consumer<EskerStoreConfigurationBuilder>> wrong = List.of(store -> store.blockSize(5000),
                store -> store.blockSize(131_072), store -> store.stripes(0), store -> store.writeBufferSize(0),
                store -> store.poolSize(-1), store -> store.addProperty("stripes", "7"));
        for (Consumer<EskerStoreConfigurationBuilder> change : wrong) {
            expectThrows(CacheConfigurationException.class, () -> settings(container -> {}, change));
        }
    }

    public void aStoreNeedsALocationUnlessTheContainerHasOne() {
        GlobalConfiguration none = new GlobalConfigurationBuilder().nonClusteredDefault().build();
        ConfigurationBuilder cache = new ConfigurationBuilder();
        cache.persistence().addStore(EskerStoreConfigurationBuilder.class);
        expectThrows(CacheConfigurationException.class, () -> cache.build(none));
        GlobalConfigurationBuilder some = new GlobalConfigurationBuilder().nonClusteredDefault();
        some.globalState().enable().persistentLocation("/data");
        cache.build(some.build());
    }

    /** The schema names every attribute that the parser takes, and knows no other. */
    public void theSchemaSaysWhatTheParserTakes() throws Exception {
        String schema = new String(schema().readAllBytes(), StandardCharsets.UTF_8);
        for (String option : OPTIONS) {
            assertTrue(schema.contains("name=\"" + option + "\""), option);
        }
        Path directory = Caches.newDirectory();
        try (InputStream core = getClass().getResourceAsStream("/schema/infinispan-config-16.0.xsd")) {
            // Infinispan's schema refers to that of JGroups, which is in no jar; nothing of it is needed here.
            Path transport = Files.writeString(directory.resolve("jgroups.xsd"), """
                    <xs:schema targetNamespace="urn:org:jgroups" xmlns:xs="http://www.w3.org/2001/XMLSchema">
                      <xs:complexType name="ConfigType"/>
                    </xs:schema>""");
            Path infinispan = Files.writeString(directory.resolve("infinispan.xsd"),
                    importing(new String(core.readAllBytes(), StandardCharsets.UTF_8), transport)
                            // One of its defaults is no value of its type, which validators refuse.
                            .replaceAll(" default=\"[^\"]*\"", ""));
            Path own = Files.writeString(directory.resolve("esker.xsd"), importing(schema, infinispan));
            var validator = SchemaFactory.newInstance(XMLConstants.W3C_XML_SCHEMA_NS_URI)
                    .newSchema(new StreamSource(own.toFile())).newValidator();
            String store = "<esker-store xmlns='urn:infinispan:config:store:esker:16.0' path='/d' purge='true'"
                    + " write.sync='true'/>";
            validator.validate(new StreamSource(new StringReader(store)));
            expectThrows(SAXException.class, () -> validator.validate(
                    new StreamSource(new StringReader(store.replace("write.sync", "write.sink")))));
        } finally {
            Caches.remove(directory);
        }
    }

    private static String importing(String schema, Path other) {
        return schema.replaceAll("schemaLocation=\"[^\"]*\"", "schemaLocation=\"" + other.toUri() + "\"");
    }

    private InputStream schema() {
        return getClass().getResourceAsStream("/schema/infinispan-cachestore-esker-config-16.0.xsd");
    }
}
