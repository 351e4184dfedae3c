/**
 * Esker: an embedded, ordered, persistent key-value store.
 *
 * <p>{@link io.esker.Esker} opens a store; {@link io.esker.Keyspace} reads and writes; {@link io.esker.Cursor} and
 * {@link io.esker.Entries} walk; {@link io.esker.WriteBatch} writes several entries together or not at all.
 */
package io.esker;
