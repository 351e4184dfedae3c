package io.esker.infinispan;

import io.esker.Esker;
import io.esker.Options;
import io.esker.infinispan.configuration.EskerAttributes;
import io.esker.infinispan.configuration.EskerSettings;
import io.esker.infinispan.configuration.EskerStoreConfiguration;
import io.reactivex.rxjava3.core.Flowable;
import jakarta.transaction.Transaction;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.commons.configuration.ConfiguredBy;
import org.infinispan.commons.time.TimeService;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
import org.infinispan.commons.util.concurrent.CompletableFutures;
import org.infinispan.distribution.ch.KeyPartitioner;
import org.infinispan.persistence.PersistenceUtil;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.infinispan.persistence.spi.PersistenceException;
import org.infinispan.util.concurrent.BlockingManager;
import org.reactivestreams.Publisher;

/**
 * Keeps the entries of a cache in an Esker store, a directory of its own for each cache.
 *
 * <p>It has all that Infinispan asks for of a local store: segments, bulk reads, expiry, and transactions. Marshalling is done
 * on the calling thread, and so are reads and changes of one entry until one of them waits, for a disk or for a memtable that is
 * full; these, and all else that touches files, run on Infinispan's blocking threads.
 *
 * @param <K> keys
 * @param <V> values
 */
@ConfiguredBy(EskerStoreConfiguration.class)
public class EskerStore<K, V> implements NonBlockingStore<K, V> {
    private static final int MOST_BYTES_IN_PLACE = 64 << 10;

    private EskerStoreConfiguration configuration;
    private InitializationContext context;
    private String cacheName;
    private Path directory;
    private boolean segmented;
    private TimeService time;
    private KeyPartitioner partitioner;
    private Marshalling<K, V> marshalling;
    private BlockingManager blocking;
    /** Null when the number of calls at once is not limited. */
    private BlockingManager.BlockingExecutor limited;
    private final InPlace reads = new InPlace(System::nanoTime);
    private final InPlace changes = new InPlace(System::nanoTime);
    /** Whether a change waits for the device. */
    private boolean synced;
    private volatile EntryTable table;
    private Publishing<K, V> publishing;
    /** What transactions that are prepared will change. Infinispan commits or rolls back each. */
    private final Map<Transaction, Changes> prepared = new ConcurrentHashMap<>();

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Void> start(InitializationContext ctx) {
        context = ctx;
        configuration = ctx.getConfiguration();
        cacheName = ctx.getCache().getName();
        segmented = configuration.segmented();
        time = ctx.getTimeService();
        partitioner = ctx.getKeyPartitioner();
        blocking = ctx.getBlockingManager();
        marshalling = new Marshalling<>(ctx.getPersistenceMarshaller(), ctx.getMarshallableEntryFactory());
        EskerSettings settings = EskerSettings.of(configuration, ctx.getGlobalConfiguration());
        synced = settings.get(EskerAttributes.WRITE_SYNC);
        int callsAtOnce = settings.get(EskerAttributes.POOL_SIZE);
        limited = callsAtOnce == 0 ? null : blocking.limitedBlockingExecutor("esker-" + cacheName, callsAtOnce);
        directory = PersistenceUtil.getQualifiedLocation(
                ctx.getGlobalConfiguration(), configuration.location(), cacheName, "esker");
        return blocking.runBlocking(() -> open(settings), "esker-open");
    }

    private void open(EskerSettings settings) {
        int segments = context.getCache().getCacheConfiguration().clustering().hash().numSegments();
        if (segmented && segments > EntryKeys.MAX_SEGMENTS) {
            throw new CacheConfigurationException("The Esker store of cache '" + cacheName + "' keeps up to "
                    + EntryKeys.MAX_SEGMENTS + " segments, not " + segments);
        }
        try {
            Options options = settings.toOptions();
            if (settings.get(EskerAttributes.CREATE_IF_MISSING)) {
                Files.createDirectories(directory.getParent());
            }
            Layout wanted = new Layout(segmented, segmented ? segments : 1, 0);
            table = EntryTable.open(directory, options, settings.get(EskerAttributes.STRIPES), configuration.purgeOnStartup(), wanted,
                    key -> partitioner.getSegment(marshalling.unmarshal(key)));
            publishing = new Publishing<>(table, marshalling, blocking, cacheName);
        } catch (IOException | RuntimeException | LinkageError e) {
            throw new CacheConfigurationException("The Esker store of cache '" + cacheName + "' in " + directory
                    + " cannot be opened: " + e.getMessage(), e);
        }
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Void> stop() {
        return blocking.runBlocking(this::close, "esker-stop");
    }

    private void close() {
        prepared.clear();
        EntryTable closing = table;
        table = null;
        if (closing != null) {
            call(() -> {
                closing.close();
                return null;
            });
        }
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Void> destroy() {
        return blocking.runBlocking(() -> {
            close();
            call(() -> {
                Esker.destroy(directory);
                return null;
            });
        }, "esker-destroy");
    }

    /** {@inheritDoc} */
    @Override
    public Set<Characteristic> characteristics() {
        return EnumSet.of(Characteristic.BULK_READ, Characteristic.EXPIRATION, Characteristic.SEGMENTABLE,
                Characteristic.TRANSACTIONAL);
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Boolean> isAvailable() {
        return blocking.supplyBlocking(() -> {
            EntryTable current = table;
            return current != null && call(current::isUsable);
        }, "esker-available");
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<MarshallableEntry<K, V>> load(int segment, Object key) {
        int stored = segmentOf(segment);
        byte[] entryKey = marshalling.keyToFind(stored, key);
        if (entryKey == null) {
            return CompletableFutures.completedNull();
        }
        return read(() -> table().get(stored, entryKey), "esker-load").thenApply(bytes -> alive(key, bytes));
    }

    private MarshallableEntry<K, V> alive(Object key, byte[] stored) {
        if (stored == null || StoredEntry.isExpired(StoredEntry.expiryOf(stored), time.wallClockTime())) {
            return null;
        }
        return marshalling.entry(key, stored);
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Boolean> containsKey(int segment, Object key) {
        int stored = segmentOf(segment);
        byte[] entryKey = marshalling.keyToFind(stored, key);
        if (entryKey == null) {
            return CompletableFutures.completedFalse();
        }
        return read(() -> table().isAlive(stored, entryKey, time.wallClockTime()), "esker-contains");
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Void> write(int segment, MarshallableEntry<? extends K, ? extends V> entry) {
        int stored = segmentOf(segment);
        byte[] entryKey;
        byte[] value;
        long expiryMs = StoredEntry.expiryOf(entry);
        try {
            entryKey = marshalling.entryKey(stored, entry);
            value = StoredEntry.encode(entry, expiryMs);
        } catch (PersistenceException e) {
            return CompletableFuture.failedFuture(e);
        }
        return change(entryKey, value.length, () -> {
            table().put(stored, entryKey, value, expiryMs);
            return null;
        }, "esker-write");
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Boolean> delete(int segment, Object key) {
        int stored = segmentOf(segment);
        byte[] entryKey = marshalling.keyToFind(stored, key);
        if (entryKey == null) {
            return CompletableFutures.completedFalse();
        }
        return change(entryKey, 0, () -> table().delete(stored, entryKey), "esker-delete");
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Void> batch(int publisherCount, Publisher<SegmentedPublisher<Object>> removePublisher,
            Publisher<SegmentedPublisher<MarshallableEntry<K, V>>> writePublisher) {
        return collect(publisherCount, removePublisher, writePublisher).thenCompose(this::apply);
    }

    private CompletionStage<Void> apply(Changes changes) {
        if (changes.isEmpty()) {
            return CompletableFutures.completedNull();
        }
        return onBlockingThread(() -> {
            table().apply(changes);
            return null;
        }, "esker-batch");
    }

    /** Both publishers give nothing before both are subscribed to, and as many at once as they ask for. */
    private CompletionStage<Changes> collect(int publisherCount, Publisher<SegmentedPublisher<Object>> removePublisher,
            Publisher<SegmentedPublisher<MarshallableEntry<K, V>>> writePublisher) {
        Changes changes = new Changes();
        int atOnce = Math.max(1, publisherCount);
        Flowable<Object> removes = Flowable.fromPublisher(removePublisher).flatMap(
                part -> Flowable.<Object>fromPublisher(part).doOnNext(
                        key -> changes.remove(marshalling.keyToFind(segmentOf(part.getSegment()), key))),
                false, atOnce);
        Flowable<MarshallableEntry<K, V>> writes = Flowable.fromPublisher(writePublisher).flatMap(
                part -> Flowable.fromPublisher(part).doOnNext(entry -> {
                    long expiryMs = StoredEntry.expiryOf(entry);
                    changes.put(marshalling.entryKey(segmentOf(part.getSegment()), entry),
                            StoredEntry.encode(entry, expiryMs), expiryMs);
                }),
                false, atOnce);
        return Flowable.merge(removes, writes).ignoreElements().toCompletionStage(null).thenApply(nothing -> changes);
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Void> prepareWithModifications(Transaction transaction, int publisherCount,
            Publisher<SegmentedPublisher<Object>> removePublisher,
            Publisher<SegmentedPublisher<MarshallableEntry<K, V>>> writePublisher) {
        return collect(publisherCount, removePublisher, writePublisher).thenAccept(changes -> prepared.put(transaction, changes));
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Void> commit(Transaction transaction) {
        Changes changes = prepared.remove(transaction);
        return changes == null ? CompletableFutures.completedNull() : apply(changes);
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Void> rollback(Transaction transaction) {
        prepared.remove(transaction);
        return CompletableFutures.completedNull();
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Void> clear() {
        return onBlockingThread(() -> {
            table().clear();
            return null;
        }, "esker-clear");
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Long> size(IntSet segments) {
        if (!segmented) {
            return Flowable.fromPublisher(publishKeys(segments, null)).count().toCompletionStage();
        }
        return onBlockingThread(() -> table().size(segments, time.wallClockTime()), "esker-size");
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Long> approximateSize(IntSet segments) {
        IntSet stored = segmented ? segments : IntSets.immutableSet(0);
        return onBlockingThread(() -> table().approximateSize(stored), "esker-approximate-size");
    }

    /** {@inheritDoc} */
    @Override
    public Publisher<MarshallableEntry<K, V>> publishEntries(
            IntSet segments, Predicate<? super K> filter, boolean includeValues) {
        return publishing.entries(storedSegments(segments), filterFor(segments, filter), time::wallClockTime);
    }

    /** {@inheritDoc} */
    @Override
    public Publisher<K> publishKeys(IntSet segments, Predicate<? super K> filter) {
        return publishing.keys(storedSegments(segments), filterFor(segments, filter), time::wallClockTime);
    }

    /** {@inheritDoc} */
    @Override
    public Publisher<MarshallableEntry<K, V>> purgeExpired() {
        return publishing.purge(time::wallClockTime);
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Void> addSegments(IntSet segments) {
        return changeSegments(() -> table().addSegments(segments), "esker-add-segments");
    }

    /** {@inheritDoc} */
    @Override
    public CompletionStage<Void> removeSegments(IntSet segments) {
        return changeSegments(() -> table().removeSegments(segments), "esker-remove-segments");
    }

    private CompletionStage<Void> changeSegments(Runnable change, String name) {
        if (!segmented) {
            return CompletableFutures.completedNull();
        }
        return onBlockingThread(() -> {
            change.run();
            return null;
        }, name);
    }

    /** Without segments all entries are in one, whatever the caller says. */
    private int segmentOf(int segment) {
        return segmented ? segment : 0;
    }

    private IntSet storedSegments(IntSet segments) {
        return segmented ? segments : IntSets.immutableSet(0);
    }

    private Predicate<? super K> filterFor(IntSet segments, Predicate<? super K> filter) {
        return segmented
                ? filter
                : org.infinispan.persistence.internal.PersistenceUtil.combinePredicate(segments, partitioner, filter);
    }

    EntryTable table() {
        EntryTable current = table;
        if (current == null) {
            throw new PersistenceException("Esker store of cache '" + cacheName + "': the store was stopped");
        }
        return current;
    }

    /** Reads one entry: in place where that is allowed and the number of calls at once is not limited. */
    private <T> CompletionStage<T> read(Supplier<T> call, String name) {
        long beganNs = reads.nowNs();
        if (limited != null || !reads.isAllowed(beganNs)) {
            return onBlockingThread(call, name);
        }
        CompletionStage<T> done = here(call);
        reads.end(beganNs);
        return done;
    }

    /**
     * Changes one entry: in place as well, unless it waits for the device, or for somebody who changes entries too, or has many bytes
     * to copy.
     */
    private <T> CompletionStage<T> change(byte[] entryKey, int bytes, Supplier<T> call, String name) {
        long beganNs = changes.nowNs();
        EntryTable current = table;
        if (limited != null || synced || bytes > MOST_BYTES_IN_PLACE || current == null || !changes.isAllowed(beganNs)) {
            return onBlockingThread(call, name);
        }
        try (Stripes.Held held = current.tryLock(entryKey)) {
            if (held != null) {
                CompletionStage<T> done = here(call);
                changes.end(beganNs);
                return done;
            }
        }
        return onBlockingThread(call, name);
    }

    /** Runs a call on this thread; what it throws comes as from a blocking thread. */
    private <T> CompletionStage<T> here(Supplier<T> call) {
        try {
            return CompletableFuture.completedFuture(call(call));
        } catch (Throwable e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    private <T> CompletionStage<T> onBlockingThread(Supplier<T> call, String name) {
        Supplier<T> translated = () -> call(call);
        return limited == null ? blocking.supplyBlocking(translated, name) : limited.supply(translated, name);
    }

    private <T> T call(Supplier<T> call) {
        return Failures.translated(cacheName, call);
    }
}
