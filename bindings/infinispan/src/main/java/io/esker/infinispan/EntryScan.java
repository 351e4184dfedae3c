package io.esker.infinispan;

import io.esker.Cursor;
import io.esker.ReadableKeyspace;

/** A walk over the entries of some segments, in the order of the segments, as they were when it was made. */
final class EntryScan implements AutoCloseable {
    private final Cursor cursor;
    private final int[] segments;
    /** Which of the segments the cursor is in, or was sent to. */
    private int at = -1;
    private boolean started;

    /** Takes ascending segments. */
    EntryScan(ReadableKeyspace entries, int[] segments, boolean keysOnly) {
        this.cursor = entries.cursor(keysOnly);
        this.segments = segments;
    }

    /** Goes to the next entry; false at the end. */
    boolean next() {
        boolean onEntry = started ? cursor.next() : seekNextSegment();
        started = true;
        while (onEntry) {
            int segment = segmentUnderCursor();
            while (at < segments.length && segments[at] < segment) {
                at++;
            }
            if (at == segments.length) {
                return false;
            }
            if (segments[at] == segment) {
                return true;
            }
            onEntry = cursor.seek(EntryKeys.segmentPrefix(segments[at]));
        }
        return false;
    }

    private boolean seekNextSegment() {
        at++;
        return at < segments.length && cursor.seek(EntryKeys.segmentPrefix(segments[at]));
    }

    private int segmentUnderCursor() {
        var key = cursor.keyBuffer();
        return key.getShort(0) & 0xffff;
    }

    int segment() {
        return segments[at];
    }

    byte[] entryKey() {
        return cursor.key();
    }

    /** What is stored; empty when the walk is over keys only. */
    byte[] stored() {
        return cursor.value();
    }

    @Override
    public void close() {
        cursor.close();
    }
}
