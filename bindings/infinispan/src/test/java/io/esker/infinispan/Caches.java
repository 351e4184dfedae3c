package io.esker.infinispan;

import io.esker.infinispan.configuration.EskerStoreConfigurationBuilder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;

/** Containers and directories for tests. */
final class Caches {
    static final String NAME = "trees";

    private Caches() {}

    static Path newDirectory() throws IOException {
        return Files.createTempDirectory("esker-infinispan");
    }

    static void remove(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    /** A container of one node, with a cache {@link #NAME} whose store is in this directory. */
    static DefaultCacheManager open(Path directory, Consumer<EskerStoreConfigurationBuilder> change) {
        ConfigurationBuilder cache = new ConfigurationBuilder();
        EskerStoreConfigurationBuilder store =
                cache.persistence().addStore(EskerStoreConfigurationBuilder.class).location(directory.toString());
        change.accept(store);
        return open(cache);
    }

    static DefaultCacheManager open(Path directory) {
        return open(directory, store -> {});
    }

    /** A container of one node, with a cache {@link #NAME} that is configured so. */
    static DefaultCacheManager open(ConfigurationBuilder cache) {
        GlobalConfigurationBuilder container = new GlobalConfigurationBuilder().nonClusteredDefault();
        container.jmx().disable();
        container.metrics().gauges(false);
        DefaultCacheManager manager = new DefaultCacheManager(container.build());
        try {
            manager.defineConfiguration(NAME, cache.build(container.build()));
            manager.getCache(NAME);
            return manager;
        } catch (RuntimeException | Error e) {
            manager.stop();
            throw e;
        }
    }

    /** The messages of an exception and all its causes. */
    static String messages(Throwable thrown) {
        StringBuilder all = new StringBuilder();
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            all.append(cause.getClass().getName()).append(": ").append(cause.getMessage()).append('\n');
        }
        return all.toString();
    }
}
