package io.esker;

import java.lang.ref.WeakReference;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;

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
    /**
     * One for each keyspace, as long as somebody has it: whoever asks for a keyspace by its name has a new object each time. Under
     * the lock of {@code boxes}.
     */
    private final Map<Keyspace, WeakReference<View>> views = new WeakHashMap<>();

    /** What is to be freed. Refers to no snapshot. */
    private static final class Boxes implements Runnable {
        private final long snapshot;
        private final Set<Box> views = new HashSet<>();

        Boxes(long snapshot) {
            this.snapshot = snapshot;
        }

        @Override
        public synchronized void run() {
            views.forEach(box -> Native.freeReader(box.pointer));
            views.clear();
            Native.freeSnapshot(snapshot);
        }
    }

    /** The box of one view, which is freed when nobody has the view any more, or with the snapshot. Refers to no view. */
    private static final class Box implements Runnable {
        private final Boxes all;
        private final long pointer;

        Box(Boxes all, long pointer) {
            this.all = all;
            this.pointer = pointer;
        }

        @Override
        public void run() {
            synchronized (all) {
                if (all.views.remove(this)) Native.freeReader(pointer);
            }
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
                WeakReference<View> known = views.get(keyspace);
                View view = known == null ? null : known.get();
                if (view == null) {
                    Box box = new Box(boxes, Native.at(keyspace.pointer, boxes.snapshot));
                    boxes.views.add(box);
                    view = new View(keyspace, this, box.pointer);
                    Native.CLEANER.register(view, box);
                    views.put(keyspace, new WeakReference<>(view));
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
