package io.esker.infinispan;

import io.reactivex.rxjava3.core.Emitter;
import io.reactivex.rxjava3.core.Flowable;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.infinispan.commons.util.IntSet;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.util.concurrent.BlockingManager;
import org.reactivestreams.Publisher;

/**
 * Walks as publishers. Each subscriber has a walk of its own, begun when it subscribes; entries are read on a blocking thread, as
 * many as were asked for, and the walk is closed at its end, at an error and when it is cancelled.
 */
final class Publishing<K, V> {
    private final EntryTable table;
    private final Marshalling<K, V> marshalling;
    private final BlockingManager blocking;
    private final String cacheName;

    Publishing(EntryTable table, Marshalling<K, V> marshalling, BlockingManager blocking, String cacheName) {
        this.table = table;
        this.marshalling = marshalling;
        this.blocking = blocking;
        this.cacheName = cacheName;
    }

    Publisher<K> keys(IntSet segments, Predicate<? super K> filter, LongSupplier clock) {
        Flowable<K> keys = Flowable.generate(() -> begin(segments, true, clock), (AliveScan scan, Emitter<K> to) -> {
            K key = nextKey(scan, filter);
            emit(key, to);
        }, AliveScan::close);
        return blocking.blockingPublisher(keys);
    }

    Publisher<MarshallableEntry<K, V>> entries(IntSet segments, Predicate<? super K> filter, LongSupplier clock) {
        Flowable<MarshallableEntry<K, V>> entries = Flowable.generate(
                () -> begin(segments, false, clock), (AliveScan scan, Emitter<MarshallableEntry<K, V>> to) -> {
                    K key = nextKey(scan, filter);
                    emit(key == null ? null : marshalling.entry(key, scan.stored()), to);
                }, AliveScan::close);
        return blocking.blockingPublisher(entries);
    }

    Publisher<MarshallableEntry<K, V>> purge(LongSupplier clock) {
        Flowable<List<EntryTable.Expired>> removed = Flowable.generate(
                () -> Failures.translated(cacheName, () -> table.purge(clock.getAsLong())),
                (ExpiryPurge purge, Emitter<List<EntryTable.Expired>> to) ->
                        emit(Failures.translated(cacheName, purge::some), to),
                ExpiryPurge::close);
        // One hop between threads for many entries: they are unpacked behind it.
        return Flowable.fromPublisher(blocking.blockingPublisher(removed))
                .concatMapIterable(some -> some)
                .map(entry -> marshalling.entry(marshalling.key(entry.entryKey()), entry.stored()));
    }

    private AliveScan begin(IntSet segments, boolean keysOnly, LongSupplier clock) {
        return Failures.translated(cacheName, () -> table.scan(segments, keysOnly, clock.getAsLong()));
    }

    private K nextKey(AliveScan scan, Predicate<? super K> filter) {
        return Failures.translated(cacheName, () -> {
            while (scan.next()) {
                K key = marshalling.key(scan.entryKey());
                if (filter == null || filter.test(key)) {
                    return key;
                }
            }
            return null;
        });
    }

    private static <T> void emit(T next, Emitter<T> to) {
        if (next == null) {
            to.onComplete();
        } else {
            to.onNext(next);
        }
    }
}
