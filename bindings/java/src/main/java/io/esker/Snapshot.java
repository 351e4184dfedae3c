package io.esker;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/**
 * A store as it was at one moment, all keyspaces of it: what {@link Keyspace#at(Snapshot)} reads. While it is open, the
 * versions that it sees are kept. Any number of threads may use it. One that is forgotten is closed when it is collected.
 */
public final class Snapshot implements AutoCloseable {
    private final Esker store;
    private final Gate gate = new Gate("snapshot");
    private final Boxes boxes;
    private final java.lang.ref.Cleaner.Cleanable cleanable;
    private final long sequence;
    /** One for each keyspace, so that asking again and again takes no more memory. Under the lock of {@code boxes}. */
    private final Map<Keyspace, View> views = new IdentityHashMap<>();

    /** What is to be freed. Refers to no snapshot. */
    private static final class Boxes implements Runnable {
        private final long snapshot;
        private final List<Long> views = new ArrayList<>();

        Boxes(long snapshot) {
            this.snapshot = snapshot;
        }

        @Override
        public void run() {
            views.forEach(Native::freeReader);
            Native.freeSnapshot(snapshot);
        }
    }

    Snapshot(Esker store, long pointer) {
        this.store = store;
        boxes = new Boxes(pointer);
        cleanable = Native.CLEANER.register(this, boxes);
        sequence = Native.sequence(pointer);
    }

    /**
     * The sequence of the last commit that the snapshot sees; also after it was closed.
     *
     * @return the sequence
     */
    public long sequence() {
        return sequence;
    }

    Gate gate() {
        return gate;
    }

    View of(Keyspace keyspace) {
        if (keyspace.store() != store) {
            throw new IllegalArgumentException("the snapshot is of another store, or from before this one was opened");
        }
        int cell = gate.enter();
        try {
            synchronized (boxes) {
                View view = views.get(keyspace);
                if (view == null) {
                    long pointer = Native.at(keyspace.pointer, boxes.snapshot);
                    boxes.views.add(pointer);
                    view = new View(keyspace, this, pointer);
                    views.put(keyspace, view);
                }
                return view;
            }
        } finally {
            gate.exit(cell);
            Reader.keep(this);
        }
    }

    /**
     * Lets the versions go. Waits for reads under way; later ones throw {@link IllegalStateException}. Cursors stay as they
     * are. Closing again does nothing.
     */
    @Override
    public void close() {
        gate.close();
        gate.drain();
        cleanable.clean();
    }
}
