package io.esker;

import java.lang.ref.Reference;

/** A keyspace as a snapshot sees it. */
final class View extends Reader {
    private final Keyspace keyspace;
    private final Snapshot snapshot;

    /** The snapshot frees the box, once this object is collected or the snapshot is closed. */
    View(Keyspace keyspace, Snapshot snapshot, long pointer) {
        super(keyspace.store(), pointer);
        this.keyspace = keyspace;
        this.snapshot = snapshot;
    }

    /** The snapshot is asked first: a snapshot that is closed says so, whatever else was. */
    @Override
    int enter() {
        int cell = snapshot.gate().enter();
        try {
            keyspace.enter();
        } catch (Throwable e) {
            snapshot.gate().exit(cell);
            throw e;
        }
        return cell;
    }

    /** Both gates have the same cell for a thread. */
    @Override
    void exit(int cell) {
        keyspace.exit(cell);
        snapshot.gate().exit(cell);
        Reference.reachabilityFence(this);
    }

    @Override
    public Order order() {
        snapshot.gate().check();
        return keyspace.order();
    }

    @Override
    public String toString() {
        return keyspace + " at " + snapshot.sequence();
    }
}
