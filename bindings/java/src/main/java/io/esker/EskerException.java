package io.esker;

import java.io.Serial;
import java.util.Objects;

/**
 * What the store could not do: the message names the file, the reason, and the way out where there is one.
 *
 * <p>Wrong use has Java's own exceptions: {@link NullPointerException}, {@link IllegalArgumentException} for what is out of
 * range, and {@link IllegalStateException} for the use of what was closed.
 */
public final class EskerException extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1;

    /** The kind of what happened. Later versions may add some. */
    public enum Code {
        /** The system refused a call, or the disk is full, or the store's directory was moved. */
        IO,
        /** Stored bytes are not what was written. {@link Esker#verify} lists all damage, {@link Esker#repair} saves the rest. */
        CORRUPTION,
        /** The directory holds no store. */
        NOT_A_STORE,
        /** The directory holds a store of LevelDB, RocksDB or another of that family, or some of its files. */
        FOREIGN_STORE,
        /** A store is there, and {@link Options#errorIfExists} was asked for. */
        STORE_EXISTS,
        /** The store is open elsewhere, in this process or another. */
        LOCKED,
        /** The store is of a format, or packed in a way, that this build does not have. */
        UNSUPPORTED,
        /** The keyspace was made with another order, or one that Java does not have. */
        COMPARATOR,
        /** A keyspace of that name exists, or is missing, or was dropped. */
        KEYSPACE,
        /** A write to a store that was opened read-only. */
        READ_ONLY,
        /** An earlier failure stopped all writes; reads go on. Remove the cause, then call {@link Esker#resume}. */
        HALTED,
        /** A callback ended the call. Nothing in this version does so. */
        ABORTED,
        /** A bug in Esker, which is to be reported. */
        INTERNAL
    }

    /** The kind. */
    private final Code code;
    /** The system's number; 0 for none. */
    private final int osCode;

    /**
     * Makes one; programs need it for their tests only.
     *
     * @param code the kind of what happened
     * @param message what happened, in one line
     */
    public EskerException(Code code, String message) {
        this(code, message, 0);
    }

    EskerException(Code code, String message, int osCode) {
        super(message);
        this.code = Objects.requireNonNull(code, "code");
        this.osCode = osCode;
    }

    /**
     * The kind of what happened.
     *
     * @return the code, to branch on
     */
    public Code code() {
        return code;
    }

    /**
     * The operating system's number (errno) of an error with {@link Code#IO}, and of the one that stopped writes
     * ({@link Code#HALTED}).
     *
     * @return the number; 0 when there is none
     */
    public int osCode() {
        return osCode;
    }
}
