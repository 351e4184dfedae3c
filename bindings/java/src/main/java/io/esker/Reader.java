package io.esker;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** The reading half of a keyspace, now or at a snapshot. */
abstract sealed class Reader implements ReadableKeyspace permits Keyspace, View {
    private final Esker store;
    /** Of the reader's box, which lives as long as this object can be reached. */
    final long pointer;

    Reader(Esker store, long pointer) {
        this.store = store;
        this.pointer = pointer;
    }

    /** Begins a call; throws when it can no longer be made. */
    abstract int enter();

    /** Ends a call, and keeps this object until then. */
    abstract void exit(int cell);

    Esker store() {
        return store;
    }

    @Override
    public byte[] get(byte[] key) {
        Bytes.checkKey(key);
        int cell = enter();
        try {
            return Native.get(pointer, key, key.length);
        } finally {
            exit(cell);
        }
    }

    @Override
    public int get(byte[] key, ByteBuffer into) {
        Bytes.checkKey(key);
        return get(new Bytes.Part(key, null, 0, 0, key.length), into);
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer into) {
        return get(Bytes.Part.ofKey(key), into);
    }

    private int get(Bytes.Part key, ByteBuffer into) {
        if (into.isReadOnly()) throw new ReadOnlyBufferException();
        Bytes.Part room = Bytes.Part.of(into);
        int cell = enter();
        int length;
        try {
            length = Native.getInto(pointer, key.array(), key.direct(), key.at(), key.length(),
                    room.array(), room.direct(), room.at(), room.length());
        } finally {
            exit(cell);
        }
        if (length > 0) into.position(room.position() + Math.min(length, room.length()));
        return length;
    }

    @Override
    public ByteBuffer getBuffer(byte[] key) {
        Bytes.checkKey(key);
        int cell = enter();
        try {
            return Lent.get(pointer, key, store.held());
        } finally {
            exit(cell);
        }
    }

    @Override
    public boolean contains(byte[] key) {
        Bytes.checkKey(key);
        int cell = enter();
        try {
            return Native.contains(pointer, key, key.length);
        } finally {
            exit(cell);
        }
    }

    @Override
    public List<byte[]> multiGet(List<byte[]> keys) {
        byte[][] asked = keys.toArray(byte[][]::new);
        for (byte[] key : asked) Bytes.checkKey(key);
        int cell = enter();
        try {
            return Arrays.asList(Native.multiGet(pointer, asked));
        } finally {
            exit(cell);
        }
    }

    @Override
    public Cursor cursor(boolean keysOnly) {
        return cursor(keysOnly, false);
    }

    Cursor cursor(boolean keysOnly, boolean withholds) {
        int cell = enter();
        try {
            return new Cursor(Native.cursor(pointer, keysOnly), store.held(), withholds);
        } finally {
            exit(cell);
        }
    }

    @Override
    public Entries entries(Range range) {
        return new Entries(this, Objects.requireNonNull(range, "range"), false, false);
    }

    static void keep(Object object) {
        Reference.reachabilityFence(object);
    }
}
