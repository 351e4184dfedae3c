package io.esker.kafka;

import io.esker.CloseableIterator;
import io.esker.Entry;
import io.esker.Esker;
import io.esker.EskerException;
import io.esker.Keyspace;

import java.util.Iterator;
import java.util.List;
import java.util.function.UnaryOperator;

import org.apache.kafka.streams.errors.ProcessorStateException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes a store to a later format of values, when a topology asks for one, in the place where it is.
 *
 * <p>Each keyspace is loaded into one of the new format, which appears at once, and is dropped then. A crash in between leaves
 * both; the next opening does that keyspace again.
 */
final class Upgrade {
    private static final Logger LOG = LoggerFactory.getLogger(Upgrade.class);

    private Upgrade() {}

    static void toFormat(Esker esker, String store, Format format, boolean sessions) {
        for (Format other : Format.values()) {
            if (other == format) continue;
            List<String> keyspaces = esker.keyspaces().stream().filter(name -> name.endsWith(other.suffix())).toList();
            if (keyspaces.isEmpty()) continue;
            if (other.compareTo(format) > 0) {
                throw new ProcessorStateException("Store " + store + " holds values of the format " + other + " and cannot be opened as "
                        + format + ". To go back, delete the state directory of its task: the store is restored from the changelog.");
            }
            LOG.info("Store {} takes its values from the format {} to {}", store, other, format);
            for (String keyspace : keyspaces) convert(esker, keyspace, other, format, format.from(other, sessions));
        }
    }

    private static void convert(Esker esker, String keyspace, Format older, Format newer, UnaryOperator<byte[]> conversion) {
        String target = keyspace.substring(0, keyspace.length() - older.suffix().length()) + newer.suffix();
        try {
            esker.dropKeyspace(target); // of an upgrade that was cut short
        } catch (EskerException e) {
            if (e.code() != EskerException.Code.KEYSPACE) throw e;
        }
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
