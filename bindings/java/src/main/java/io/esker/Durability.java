package io.esker;

/** When a write counts as done. */
public enum Durability {
    /** As the store's {@linkplain Options#durability(Durability) options} say. */
    DEFAULT,
    /** When it is in the page cache: it survives the end of the process, {@code kill -9} too, and not a power cut. */
    BUFFERED,
    /** When it is on the device: it survives a power cut too. Threads that wait at the same time share one sync. */
    SYNCED
}
