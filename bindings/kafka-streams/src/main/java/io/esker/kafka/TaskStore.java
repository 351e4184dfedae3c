package io.esker.kafka;

import io.esker.Esker;
import io.esker.EskerException;
import io.esker.WriteBatch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The Esker store of one state store of one task, in {@code <task directory>/esker/<name>}.
 *
 * <p>Writes wait on the heap until the task commits, and are then written in one batch with the offsets of the changelog and the
 * position: after a crash the store is as of a commit, and knows which. When too much waits it is written without offsets, and in
 * the same batch a mark says that the store is ahead of them. Opened with that mark, the store is as good as any other one under
 * at-least-once, and corrupted under exactly-once, where Kafka Streams then builds it anew from the changelog; a global one, for
 * which nobody would do that, is emptied.
 *
 * <p>One thread writes at a time, under the lock of this object; gets and iterators take no lock.
 */
final class TaskStore {
    private static final Logger LOG = LoggerFactory.getLogger(TaskStore.class);
    private static final String PARENT = "esker";
    /** Where Kafka Streams before 4.3 kept the offsets of a task's stores. */
    private static final String OTHERS_OFFSETS = ".checkpoint";
    /** Expired segments that wait for a commit, until this many do: under exactly-once commits are rare. */
    private static final int MOST_DOOMED = 2;
    static final int MOST_KEY_BYTES = 65536;
    private static final int MOST_VALUE_BYTES = 1 << 30;

    private final String name;
    private final Kind kind;
    /** How much time a segment of it holds, in milliseconds; 0 where it has none. */
    private final long intervalMs;
    private final AtomicLong newestReader = new AtomicLong(-1);
    private final Set<MergedIterator> iterators = ConcurrentHashMap.newKeySet();
    private final Map<String, Table> tables = new ConcurrentHashMap<>();
    private final List<Table> doomed = new ArrayList<>();

    private volatile boolean open;
    private volatile long sequence;
    private volatile long bufferedBytes;
    /** Null until the first write of a new store. */
    private volatile Esker esker;
    private Commits commits;
    private final Position position = Position.emptyPosition();
    private StateStoreContext context;
    private EskerStreamsConfig config;
    private Format format;
    private Path directory;
    private boolean exactlyOnce;
    /** Whether what waits is left to whoever restores, and not written ahead of a commit. */
    private boolean restoring;
    /** Whether Kafka may still hand over the offsets that an older version of it kept for another store. */
    private boolean othersOffsets;

    TaskStore(String name, Kind kind, long intervalMs) {
        this.name = Objects.requireNonNull(name, "name");
        this.kind = kind;
        this.intervalMs = intervalMs;
    }

    /**
     * Opens the store. Where there is none yet it is made by the first write: a task may have stores that it never writes to, and
     * such a one takes no memory and no files.
     *
     * @throws ProcessorStateException if it cannot be opened, as another process has it, or is of a later format
     * @throws TaskCorruptedException if it may hold what was never committed, under exactly-once
     */
    synchronized void open(StateStoreContext context, Format format) {
        if (open) return;
        config = new EskerStreamsConfig(context.appConfigs());
        this.context = context;
        this.format = format;
        exactlyOnce = StreamsConfig.EXACTLY_ONCE_V2.equals(context.appConfigs().get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG));
        directory = context.stateDir().toPath().resolve(PARENT).resolve(name);
        othersOffsets = Files.exists(context.stateDir().toPath().resolve(OTHERS_OFFSETS));
        if (Files.exists(directory)) openDirectory();
        open = true;
    }

    private void openDirectory() {
        try {
            Files.createDirectories(directory);
            esker = Esker.open(directory, config.options());
        } catch (IOException | EskerException e) {
            throw new ProcessorStateException("Error opening store " + name + " at location " + directory + ": " + e.getMessage(), e);
        }
        boolean done = false;
        try {
            commits = new Commits(esker);
            keepShape();
            boolean global = isGlobal();
            if (exactlyOnce && commits.isAhead() && global) {
                LOG.warn("Global store {} may hold writes that its offset does not tell of, and is restored", name);
                empty();
            }
            if (exactlyOnce && commits.isAhead()) {
                throw new TaskCorruptedException(Set.of(context.taskId()), new ProcessorStateException("Store " + name
                        + " may hold writes that were never committed, as its process ended before it could commit them"));
            }
            Upgrade.toFormat(esker, name, format, kind == Kind.SESSIONS);
            position.merge(commits.position());
            done = true;
        } catch (EskerException e) {
            throw new ProcessorStateException("Error opening store " + name + " at location " + directory + ": " + e.getMessage(), e);
        } finally {
            if (!done) {
                esker.close();
                esker = null;
            }
        }
    }

    /**
     * A store that cannot be read as what it is to be is emptied, and restored from the changelog. All kinds have the same directories,
     * and some the same keyspaces. Segments are named after their number, which means another time when their length changed: dropped
     * at once, or kept for decades. One of before kinds were noted is kept where nothing contradicts: it may have no changelog.
     */
    private void keepShape() {
        Long interval = commits.intervalMs();
        String before = commits.kind();
        if (before == null) before = told(Kind.possible(esker, interval == null ? intervalMs : interval));
        if (!kind.noted().equals(before)) {
            LOG.warn("Store {} holds {} and is to hold {}: it is emptied, and restored from its changelog", name,
                    before.isEmpty() ? "what was not emptied to the end" : before, kind.noted());
            empty();
        } else if (intervalMs != 0 && interval != null && interval != intervalMs) {
            LOG.info("Store {} has segments of {} ms and is to have some of {} ms: it is restored", name, interval, intervalMs);
            empty();
        }
        commits.note(kind, intervalMs);
    }

    private String told(Set<Kind> possible) {
        if (possible.contains(kind)) return kind.noted();
        return possible.stream().map(Kind::noted).collect(Collectors.joining(" or "));
    }

    private void empty() {
        commits.forget(esker, isGlobal());
        for (String keyspace : esker.keyspaces()) {
            if (!Commits.isReserved(keyspace)) esker.dropKeyspace(keyspace);
        }
        commits.note(kind, intervalMs);
        commits.forgotten();
    }

    private boolean isGlobal() {
        return context.taskId().subtopology() < 0;
    }

    String name() {
        return name;
    }

    boolean isOpen() {
        return open;
    }

    Position position() {
        return position;
    }

    /** The store; null as long as there is none. */
    Esker esker() {
        return esker;
    }

    long bufferedBytes() {
        return bufferedBytes;
    }

    int openIterators() {
        return iterators.size();
    }

    /** The names of keyspaces that hold values. */
    List<String> tableNames() {
        checkOpen();
        if (esker == null) return List.of();
        return esker.keyspaces().stream().filter(keyspace -> !Commits.isReserved(keyspace)).toList();
    }

    /** The table of that name. Its keyspace is made with the first write. */
    synchronized Table table(String keyspace) {
        checkOpen();
        return tables.computeIfAbsent(keyspace, key -> {
            Table table = new Table(this, key, false);
            if (esker != null) bind(table);
            return table;
        });
    }

    /** A table that is dropped before the next commit: its writes stay in memory, and are not counted with those that wait. */
    Table passingTable(String keyspace) {
        checkOpen();
        return new Table(this, keyspace, true);
    }

    /** Makes the keyspace of a table, and the store where there is none yet. Under the lock. */
    private void bind(Table table) {
        ready();
        guarded("making a keyspace in", () -> {
            table.bind(esker.openOrCreateKeyspace(table.name()));
            return null;
        });
    }

    private void ready() {
        if (esker == null) openDirectory();
    }

    /**
     * Lets a table go with the next commit, or the next batch that is restored, so that a crash before it finds everything as of
     * the commit before.
     */
    synchronized void drop(Table table) {
        if (table.isPassing()) return;
        tables.remove(table.name());
        table.discard();
        if (table.isBound()) doomed.add(table);
    }

    /** Drops a keyspace that has no table, and can be made again from others. */
    synchronized void dropAtOnce(String keyspace) {
        guarded("dropping an index of", () -> {
            esker.dropKeyspace(keyspace);
            return null;
        });
    }

    /** Does not wait for the next commit when too many tables do. */
    synchronized void limitDoomed() {
        if (doomed.size() > MOST_DOOMED) spill();
    }

    byte[] get(Table table, byte[] key) {
        checkOpen();
        return reading("reading a key", () -> table.get(key));
    }

    /** Adds a write that the next commit writes, and notes where in its input the task is. A null value deletes. */
    synchronized void put(Table table, byte[] key, byte[] value) {
        checkOpen();
        if (isNoKey(key, value)) {
            notePosition();
            return;
        }
        check(key, value);
        boolean waits = !table.isPassing();
        if (waits && !table.isBound()) bind(table);
        synchronized (position) {
            long grown = WriteBuffer.sizeBytes(key, value);
            if (waits && !restoring && bufferedBytes > 0 && bufferedBytes + grown > config.uncommittedBytes()) spill();
            long next = sequence + 1;
            long grew = table.put(key, value, next, newestReader.get());
            if (waits) bufferedBytes += grew;
            sequence = next;
            notePosition();
        }
    }

    /** Notes the position of the record that is being processed. */
    void notePosition() {
        synchronized (position) {
            StoreQueryUtils.updatePosition(position, context);
        }
    }

    /** Whether a write deletes what cannot be there. */
    private static boolean isNoKey(byte[] key, byte[] value) {
        return value == null && key.length > MOST_KEY_BYTES;
    }

    private static void check(byte[] key, byte[] value) {
        if (key.length > MOST_KEY_BYTES) {
            throw new IllegalArgumentException("a key has at most " + MOST_KEY_BYTES + " bytes, this one " + key.length);
        }
        if (value != null && value.length > MOST_VALUE_BYTES) {
            throw new IllegalArgumentException("a value has at most " + MOST_VALUE_BYTES + " bytes, this one " + value.length);
        }
    }

    /**
     * Writes what waits, with the offsets, as one batch: all of it or nothing survives a crash.
     *
     * @param offsets of the changelog's partitions; none take all that there are away, a null takes that partition's away
     */
    synchronized void commit(Map<TopicPartition, Long> offsets) {
        if (!open || esker == null && isNothing(offsets)) return;
        boolean others = othersOffsets && bufferedBytes == 0; // nothing was written since it was opened
        othersOffsets = false;
        // What they tell of is in the store that was here before: this one has it from the changelog.
        if (others) return;
        ready();
        synchronized (position) {
            write(batch -> commits.add(batch, offsets, position), "committing");
        }
        commits.written(false);
        dropDoomed();
    }

    /**
     * Whether a commit says nothing to a store that nobody wrote to. Under exactly-once an offset that stands for none has to be kept:
     * a store without any, beside others of its task, is corrupted to Kafka Streams.
     */
    private boolean isNothing(Map<TopicPartition, Long> offsets) {
        if (exactlyOnce) return offsets.isEmpty();
        return offsets.values().stream().allMatch(offset -> offset != null && offset == OffsetCheckpoint.OFFSET_UNKNOWN);
    }

    Long committedOffset(TopicPartition partition) {
        checkOpen();
        return esker == null ? null : reading("reading the committed offset", () -> commits.offset(partition));
    }

    /**
     * Writes records of the changelog at once, with the offset of the last of them. They were committed before they got there, and
     * are the same when they are restored again, so this needs no mark. A store that was closed is opened by it.
     *
     * @param records adds them to the batch; the batch names keyspaces and has what waited already, so nothing may be dropped or put
     */
    synchronized void restore(TopicPartition partition, long lastOffset, Consumer<WriteBatch> records) {
        if (!open) open(context, format);
        othersOffsets = false;
        ready();
        synchronized (position) {
            boolean ahead = commits.isAhead();
            write(batch -> {
                records.accept(batch);
                if (!ahead) commits.addOffset(batch, partition, lastOffset, position);
            }, "restoring");
        }
        dropDoomed();
    }

    /** From here on, or no longer, whoever restores by {@link #put} writes what waits when {@link #isFull} says so. Under the lock. */
    void setRestoring(boolean restoring) {
        this.restoring = restoring;
    }

    /** Whether more waits than is to. */
    boolean isFull() {
        return bufferedBytes > config.uncommittedBytes();
    }

    /** Makes a passing table one that stays. Under the lock. */
    void keep(Table table) {
        if (!table.isPassing()) return;
        table.keep();
        tables.put(table.name(), table);
        if (!table.isBound()) bind(table);
    }

    /** Writes what can be made again from what is stored: without what waits, and whatever was committed. */
    void writeIndex(WriteBatch batch) {
        guarded("making an index of", () -> {
            esker.write(batch);
            return null;
        });
    }

    /** Adds a write to a batch that is being restored; a null value deletes. Under the lock. */
    void add(WriteBatch batch, Table table, byte[] key, byte[] value) {
        if (!table.isBound()) bind(table);
        if (!isNoKey(key, value)) table.add(batch, key, value);
    }

    /** Writes what waits without offsets, and says so in the store. */
    private void spill() {
        if (!commits.isAhead()) {
            LOG.debug("Store {} writes {} bytes ahead of the next commit", name, bufferedBytes);
        }
        othersOffsets = false;
        write(commits::addAhead, "writing ahead of the next commit to");
        commits.written(true);
        dropDoomed();
    }

    private void write(Consumer<WriteBatch> more, String doing) {
        guarded(doing, () -> {
            WriteBatch batch = new WriteBatch();
            boolean written = false;
            try {
                tables.values().forEach(table -> table.freezeInto(batch));
                more.accept(batch);
                if (batch.count() > 0) esker.write(batch);
                written = true;
            } finally {
                tables.values().forEach(written ? Table::thaw : Table::unfreeze);
            }
            bufferedBytes = 0;
            return null;
        });
    }

    private void dropDoomed() {
        for (Table table : doomed) {
            table.markDropped();
            guarded("dropping an expired segment of", () -> {
                esker.dropKeyspace(table.name());
                return null;
            });
        }
        doomed.clear();
    }

    /**
     * Closes the store. What waits is written under at-least-once, as it is processed again in any case, and forgotten under
     * exactly-once, where whoever closes without a commit does it because a transaction failed.
     */
    synchronized void close() {
        if (!open) return;
        // Closed it is, whatever goes wrong, want of memory too: a task that is revived opens it anew.
        try {
            if (!exactlyOnce && bufferedBytes > 0) spill();
        } catch (RuntimeException | Error e) {
            endAfter(e);
            throw e;
        }
        end();
    }

    private void endAfter(Throwable cause) {
        try {
            end();
        } catch (RuntimeException e) {
            cause.addSuppressed(e);
        }
    }

    private void end() {
        open = false;
        Esker closing = esker;
        try {
            closeIterators();
        } finally {
            tables.clear();
            doomed.clear();
            bufferedBytes = 0;
            esker = null;
            close(closing);
        }
    }

    private void close(Esker closing) {
        try {
            if (closing != null) closing.close();
        } catch (EskerException e) {
            throw new ProcessorStateException("Error closing store " + name + ": " + e.getMessage(), e);
        }
    }

    private void closeIterators() {
        Set<MergedIterator> left = new HashSet<>(iterators);
        if (left.isEmpty()) return;
        LOG.warn("Closing {} open iterators for store {}", left.size(), name);
        left.forEach(MergedIterator::close);
    }

    /** Notes a reader, for whom buffers keep the versions of now. Returns the sequence number of now. */
    long beginReading() {
        long now = sequence;
        newestReader.accumulateAndGet(now, Math::max);
        return now;
    }

    MergedIterator opened(MergedIterator iterator) {
        iterators.add(iterator);
        if (!open) {
            iterator.close();
            checkOpen();
        }
        return iterator;
    }

    void closed(MergedIterator iterator) {
        iterators.remove(iterator);
    }

    void checkOpen() {
        if (!open) throw new InvalidStateStoreException("Store " + name + " is currently closed");
    }

    /** Runs a read; what Esker throws becomes what Kafka Streams expects. */
    <T> T reading(String doing, Supplier<T> read) {
        return guarded(doing + " of", read);
    }

    private <T> T guarded(String doing, Supplier<T> work) {
        try {
            return work.get();
        } catch (EskerException e) {
            throw new ProcessorStateException("Error while " + doing + " store " + name + ": " + e.getMessage(), e);
        } catch (IllegalStateException e) {
            if (open) throw e;
            throw new InvalidStateStoreException("Store " + name + " was closed while it was used", e);
        }
    }
}
