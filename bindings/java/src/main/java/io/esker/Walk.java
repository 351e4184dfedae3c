package io.esker;

import java.util.NoSuchElementException;

/** The iterator of {@link Entries}: a cursor within bounds. */
final class Walk implements CloseableIterator<Entry> {
    private final Cursor cursor;
    private final Order order;
    private final Range range;
    private final boolean reversed;
    private boolean begun;
    private boolean ended;
    /** What the next call of {@link #next} gives, when it is known already. */
    private Entry ahead;

    Walk(Cursor cursor, Order order, Range range, boolean reversed) {
        this.cursor = cursor;
        this.order = order;
        this.range = range;
        this.reversed = reversed;
    }

    @Override
    public boolean hasNext() {
        if (ahead != null) return true;
        if (ended) return false;
        boolean found = false;
        try {
            found = move();
        } finally {
            // At the end, and after an error.
            if (!found) close();
        }
        return found;
    }

    private boolean move() {
        boolean onEntry;
        if (begun) {
            onEntry = reversed ? cursor.previous() : cursor.next();
        } else {
            begun = true;
            onEntry = reversed ? toEnd() : toBeginning();
        }
        if (onEntry) {
            byte[] key = cursor.key();
            if (reversed ? range.begins(order, key) : range.ends(order, key)) {
                ahead = new Entry(key, cursor.value());
                return true;
            }
        }
        return false;
    }

    private boolean toBeginning() {
        if (range.from() == null) return cursor.first();
        boolean onEntry = cursor.seek(range.from());
        return onEntry && !range.begins(order, cursor.key()) ? cursor.next() : onEntry;
    }

    private boolean toEnd() {
        if (range.to() == null) return cursor.last();
        boolean onEntry = cursor.seekBack(range.to());
        return onEntry && !range.ends(order, cursor.key()) ? cursor.previous() : onEntry;
    }

    @Override
    public Entry next() {
        if (!hasNext()) throw new NoSuchElementException("the walk is at its end");
        Entry entry = ahead;
        ahead = null;
        return entry;
    }

    @Override
    public void close() {
        ended = true;
        ahead = null;
        cursor.close();
    }
}
