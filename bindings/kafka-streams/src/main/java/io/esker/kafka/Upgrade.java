package io.esker.kafka;

import io.esker.CloseableIterator;
import io.esker.Entry;
import io.esker.Esker;
import io.esker.Keyspace;

import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.UnaryOperator;

import org.apache.kafka.streams.errors.ProcessorStateException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes a store to a later format of values, when a topology asks for one, in the place where it is.
 *
 * <p>Each keyspace is loaded into one of the new format, and is dropped then. A crash in between leaves both, whatever there is of
 * the new one; the next opening, which may ask for yet another format, does that keyspace again. So of several formats of a
 * keyspace the oldest is whole, and the others count for nothing.
 */
final class Upgrade {
    private static final Logger LOG = LoggerFactory.getLogger(Upgrade.class);

    private Upgrade() {}

    static void toFormat(Esker esker, String store, Format format, boolean sessions) {
        List<String> keyspaces = esker.keyspaces();
        Map<String, Format> oldest = new TreeMap<>(); // by the name without its format
        for (Format found : Format.values()) {
            for (String keyspace : keyspaces) {
                if (keyspace.endsWith(found.suffix())) oldest.putIfAbsent(found.without(keyspace), found);
            }
        }
        for (Format found : oldest.values()) {
            if (found.compareTo(format) > 0) {
                throw new ProcessorStateException("Store " + store + " holds values of the format " + found + " and cannot be opened as "
                        + format + ". To go back, delete the state directory of its task: the store is restored from the changelog.");
            }
        }
        oldest.forEach((name, found) -> {
            for (Format later : Format.values()) {
                if (later.compareTo(found) > 0 && keyspaces.contains(name + later.suffix())) esker.dropKeyspace(name + later.suffix());
            }
            if (found == format) return;
            LOG.info("Store {} takes {} from the format {} to {}", store, name, found, format);
            convert(esker, name + found.suffix(), name + format.suffix(), format.from(found, sessions));
        });
    }

    private static void convert(Esker esker, String keyspace, String target, UnaryOperator<byte[]> conversion) {
        Keyspace to = esker.createKeyspace(target);
        try (CloseableIterator<Entry> entries = esker.keyspace(keyspace).entries().iterator()) {
            to.bulkLoad(new Iterator<>() {
                @Override
                public boolean hasNext() {
                    return entries.hasNext();
                }

                @Override
                public Entry next() {
                    Entry entry = entries.next();
                    return new Entry(entry.key(), conversion.apply(entry.value()));
                }
            });
        }
        esker.dropKeyspace(keyspace);
    }
}
