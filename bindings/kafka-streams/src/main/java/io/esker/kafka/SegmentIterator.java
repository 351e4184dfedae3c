package io.esker.kafka;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Function;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.internals.HasNextCondition;

/** The entries of several segments that a condition lets pass, segment after segment, each opened when it is come to. */
final class SegmentIterator implements KeyValueIterator<Bytes, byte[]> {
    private final Iterator<Segments.Segment> segments;
    private final Function<Segments.Segment, KeyValueIterator<Bytes, byte[]>> opener;
    private final HasNextCondition condition;
    private KeyValueIterator<Bytes, byte[]> current;
    private boolean closed;

    /**
     * @param opener what is looked at in a segment
     * @param condition steps over what does not pass, and says whether something is left
     */
    SegmentIterator(Iterator<Segments.Segment> segments, Function<Segments.Segment, KeyValueIterator<Bytes, byte[]>> opener,
            HasNextCondition condition) {
        this.segments = segments;
        this.opener = opener;
        this.condition = condition;
    }

    @Override
    public boolean hasNext() {
        if (closed) throw new InvalidStateStoreException("an iterator was used after it was closed");
        while (current == null || !passes()) {
            if (current != null) current.close();
            current = null;
            if (!segments.hasNext()) return false;
            try {
                current = opener.apply(segments.next());
            } catch (InvalidStateStoreException e) {
                return false; // the store was closed
            }
        }
        return true;
    }

    private boolean passes() {
        try {
            return condition.hasNext(current);
        } catch (InvalidStateStoreException e) {
            return false; // the store was closed, and this with it
        }
    }

    @Override
    public KeyValue<Bytes, byte[]> next() {
        if (!hasNext()) throw new NoSuchElementException();
        return current.next();
    }

    @Override
    public Bytes peekNextKey() {
        if (!hasNext()) throw new NoSuchElementException();
        return current.peekNextKey();
    }

    @Override
    public void close() {
        closed = true;
        if (current != null) current.close();
        current = null;
    }
}
