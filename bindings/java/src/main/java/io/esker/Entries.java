package io.esker;

import java.util.Objects;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * The entries of a range, to walk over: once or several times, each time as they are when the walk begins, whatever is
 * written meanwhile. Immutable.
 *
 * <p>A walk that comes to its end, or fails, gives back by itself what it holds. Where it may be left earlier, close its iterator or
 * stream; one that is forgotten is closed when it is collected.
 */
public final class Entries implements Iterable<Entry> {
    private final Reader reader;
    private final Range range;
    private final boolean reversed;
    private final boolean keysOnly;

    Entries(Reader reader, Range range, boolean reversed, boolean keysOnly) {
        this.reader = reader;
        this.range = Objects.requireNonNull(range, "range");
        this.reversed = reversed;
        this.keysOnly = keysOnly;
    }

    /**
     * The same entries, the last one first.
     *
     * @return that walk
     */
    public Entries reversed() {
        return new Entries(reader, range, !reversed, keysOnly);
    }

    /**
     * The same entries without their values, which are empty then.
     *
     * @return that walk
     */
    public Entries keysOnly() {
        return new Entries(reader, range, reversed, true);
    }

    @Override
    public CloseableIterator<Entry> iterator() {
        Order order = reader.order();
        return new Walk(reader.cursor(keysOnly, true), order, range.resolve(order), reversed);
    }

    /**
     * The entries as a stream. Closing the stream closes the walk.
     *
     * @return a sequential, ordered stream
     */
    public Stream<Entry> stream() {
        CloseableIterator<Entry> walk = iterator();
        int traits = Spliterator.ORDERED | Spliterator.DISTINCT | Spliterator.NONNULL | Spliterator.IMMUTABLE;
        return StreamSupport.stream(Spliterators.spliteratorUnknownSize(walk, traits), false).onClose(walk::close);
    }

    @Override
    public Spliterator<Entry> spliterator() {
        return stream().spliterator();
    }
}
