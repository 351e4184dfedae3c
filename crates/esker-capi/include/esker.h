/* Esker: an embedded, ordered, persistent key-value store. The C interface; docs/C.md is the guide
   to it.

   ONE OWNERSHIP RULE

   Whatever a call hands out through a pointer to a pointer (esker_db **, esker_cursor **,
   esker_error **, ...), or as the result of a `_new`, is the caller's, and is given back with the
   closing call of its type (`_close` or `_free`). That takes the address of the variable and sets
   it to NULL: to close it again, or a NULL, does nothing. The same goes for an esker_value
   (esker_value_release) and an esker_string (esker_string_free). What the caller passes in stays
   the caller's, and is copied where it is kept.

   A handle keeps alive what it needs, so handles are closed in any order. After esker_db_close,
   calls through other handles of the store give ESKER_CLOSED; values and cursors that are open keep
   the memory they point to.

   ERRORS

   Every call that can fail returns a code. One that is an error comes with an error object, if the
   last argument is not NULL: *error is overwritten, never read, and set to NULL when there is no
   error. ESKER_NOT_FOUND is an answer, not an error. What else a call hands out is empty then
   (NULL, 0, no value).

   An argument that is NULL and must not be, or a handle of another kind, gives
   ESKER_INVALID_ARGUMENT; where there is no code to return, nothing happens. A key or value of
   length 0 may be NULL.

   THREADS

   All calls may come from any thread. Stores, keyspaces and snapshots are used by any number of
   threads at a time, everything else by one at a time. A handle is closed when no call uses it any
   more, as memory is freed.

   Keys and values are any bytes; lengths and sizes are in bytes. Paths are NUL-terminated bytes,
   names NUL-terminated UTF-8. No call throws, and no callback may.

   This file is made from the source of the library, which has its documentation too. */

#ifndef ESKER_H
#define ESKER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a comparator returns that could not compare. The operation then fails with ESKER_COMPARATOR.
#define ESKER_COMPARE_FAILED INT_MIN



// What a call came to. ESKER_OK and ESKER_NOT_FOUND are answers, all others are errors. Later versions
// may add codes.
enum esker_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It was done.
  ESKER_OK = 0,
  // There is no such key, property, or entry beyond. An answer: no error object comes with it.
  ESKER_NOT_FOUND = 1,
  // An argument that cannot be: NULL where that is not allowed, a handle of another kind, an option
  // out of range, a key or value too long, keys out of order in a bulk load, a batch or snapshot of
  // another store, a name that is none.
  ESKER_INVALID_ARGUMENT = 2,
  // The operating system refused a call, or the disk is full, or the store's directory was moved.
  ESKER_IO = 3,
  // Stored bytes are not what was written.
  ESKER_CORRUPTION = 4,
  // The directory holds no store.
  ESKER_NOT_A_STORE = 5,
  // The directory holds a store of LevelDB, RocksDB or another of that family, or some of its files.
  ESKER_FOREIGN_STORE = 6,
  // A store is there, and error_if_exists was asked for.
  ESKER_STORE_EXISTS = 7,
  // The store is open elsewhere, in this process or another.
  ESKER_LOCKED = 8,
  // The store was written in a format or with a compression that this build does not have.
  ESKER_UNSUPPORTED = 9,
  // A comparator is missing or is another than the keyspace was made with, could not compare, or
  // called the store.
  ESKER_COMPARATOR = 10,
  // A keyspace of that name exists, or is missing, or the one of the handle was dropped.
  ESKER_KEYSPACE = 11,
  // A write to a store that was opened read-only, or to a keyspace as a snapshot sees it.
  ESKER_READ_ONLY = 12,
  // An earlier failure stopped all writes; reads go on. Remove the cause, then call esker_db_resume.
  ESKER_HALTED = 13,
  // The store was closed.
  ESKER_CLOSED = 14,
  // A callback said stop.
  ESKER_ABORTED = 15,
  // A bug in Esker, which is to be reported. The call had no effect that can be relied on.
  ESKER_INTERNAL = 16,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum esker_code esker_code;
#else
typedef int32_t esker_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// When a write counts as done.
enum esker_durability
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // As the store's options say, which is buffered if they say nothing.
  ESKER_DURABILITY_DEFAULT = 0,
  // When it is in the page cache: it survives a killed process, not a power cut.
  ESKER_DURABILITY_BUFFERED = 1,
  // When it is on the device: it survives a power cut, and with it everything written before it.
  ESKER_DURABILITY_SYNCED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum esker_durability esker_durability;
#else
typedef int32_t esker_durability;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How values are compressed in tables.
enum esker_compression
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Not at all.
  ESKER_COMPRESSION_NONE = 0,
  // LZ4, value by value, with a dictionary for each table; the default.
  ESKER_COMPRESSION_LZ4 = 1,
  // Zstandard in the same way: slower, smaller.
  ESKER_COMPRESSION_ZSTD = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum esker_compression esker_compression;
#else
typedef int32_t esker_compression;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The orders of keys that come with the library.
enum esker_order
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Unsigned bytes, shorter first among equal prefixes; the default.
  ESKER_ORDER_BYTEWISE = 0,
  // The reverse of that.
  ESKER_ORDER_REVERSE = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum esker_order esker_order;
#else
typedef int32_t esker_order;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Writes that are applied together or not at all, in the order they were added. One thread uses it at
// a time.
typedef struct esker_batch esker_batch;

// A walk over the keys and values of a keyspace, as they were when it was opened. One thread uses it
// at a time.
//
// A new cursor is on no entry, and so is one after an error, which esker_cursor_next, _prev, _entry
// and _read then give again; the calls that position it go on from there.
typedef struct esker_cursor esker_cursor;

// An open store. Any number of threads use it.
typedef struct esker_db esker_db;

// Why a call failed. It is the caller's, given back with esker_error_free.
typedef struct esker_error esker_error;

// A keyspace of an open store: reads and writes it, or reads it as a snapshot sees it. Any number of
// threads use it.
typedef struct esker_keyspace esker_keyspace;

// How to make a keyspace. One thread uses it at a time.
typedef struct esker_keyspace_options esker_keyspace_options;

// How to open a store. One thread uses it at a time; any number of stores may be opened with it.
typedef struct esker_options esker_options;

// The whole store, all keyspaces, as it was at one moment: esker_keyspace_at reads at it. Any number
// of threads use it. What it sees takes room in the store for as long as it is open.
typedef struct esker_snapshot esker_snapshot;

// A text: `len` bytes at `data`, and a NUL behind them. The caller's, given back with
// esker_string_free.
typedef struct {
  // The bytes; NULL when there is no text.
  char *data;
  // How many there are, without the NUL.
  size_t len;
} esker_string;

// An order of keys. It is stored by its name, and each open must be given the one of that name, with
// the same order.
//
// It orders all keys there may be, the same at all times, and tells different keys apart only if they
// are different keys to the program. Threads call it at the same time. It may not throw or longjmp,
// nor call the store: what writes or waits is refused there (ESKER_COMPARATOR), what reads would
// compare again.
typedef struct {
  // Its name, 1 to 1024 bytes of UTF-8, not beginning with "esker.".
  const char *name;
  // Passed to both functions as it is.
  void *state;
  // Below 0 when `a` comes first, above 0 when `b` does, 0 when they are the same key; or
  // ESKER_COMPARE_FAILED.
  int (*compare)(void *state, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len);
  // May be NULL. Called once with `state`, from any thread, when neither the options nor a store
  // needs the comparator any more. It may not call the store either.
  void (*destroy)(void *state);
} esker_comparator;

// A value that is not copied: it points into the store's files and keeps them, until it is released.
// It stays where it is: a copy of the struct is no value. esker_value_move moves one.
typedef struct {
  // The bytes; NULL when there is no value, which is something else than a value of no bytes.
  const uint8_t *data;
  // How many there are.
  size_t len;
  // The library's.
  uint64_t reserved[6];
} esker_value;

// A key and its value, where they lie: valid until the cursor moves or is closed. All zero when there
// is none; not NULL, when there is one, also where it is empty.
typedef struct {
  // The key.
  const uint8_t *key;
  // Its bytes.
  size_t key_len;
  // The value; empty under a cursor that walks keys only.
  const uint8_t *value;
  // Its bytes.
  size_t value_len;
} esker_entry;

// Gives the next entry of a bulk load: 1 when it has set the four, 0 at the end, below 0 to stop. What
// it points to is read before it is called again. It may use the store; it may not throw or longjmp.
typedef int (*esker_next_entry)(void *state,
                                const void **key,
                                size_t *key_len,
                                const void **value,
                                size_t *value_len);

// The shape of a store, and what it has done since it was opened. Later versions add figures at the
// end.
typedef struct {
  // The number of the last commit.
  uint64_t sequence;
  // Keyspaces.
  uint64_t keyspaces;
  // 1 when writes are stopped (ESKER_HALTED; the property `esker.halted` says why), else 0.
  uint64_t halted;
  // Segments of the log.
  uint64_t log_segments;
  // Bytes set aside for them, and for files kept to make the next ones from.
  uint64_t log_bytes;
  // Bytes of values that live in log segments.
  uint64_t blob_bytes;
  // Bytes that those segments take on the disk beside them.
  uint64_t blob_garbage_bytes;
  // Bytes of files that nothing needs but a value or a cursor that is still held.
  uint64_t pinned_bytes;
  // Bytes of table files.
  uint64_t table_bytes;
  // Bytes that the directory takes on the disk.
  uint64_t disk_bytes;
  // The memory setting, in bytes.
  uint64_t memory_budget;
  // What indexes and buffers take of it, in bytes.
  uint64_t memory_used;
  // Since open: bytes of keys and values written by the program.
  uint64_t bytes_written;
  // Since open: bytes written to the log.
  uint64_t log_bytes_written;
  // Since open: bytes read by merges.
  uint64_t compaction_bytes_read;
  // Since open: bytes written by flushes and merges.
  uint64_t compaction_bytes_written;
  // Since open: flushes and merges.
  uint64_t compactions;
  // Since open: syncs of the log.
  uint64_t log_syncs;
  // Since open: time that writers were made to wait for flushes, in nanoseconds.
  uint64_t write_stall_ns;
  // Snapshots held.
  uint64_t snapshots;
  // Files held open.
  uint64_t open_files;
  // Mappings of tables and log segments.
  uint64_t mappings;
} esker_stats;

// The shape of a keyspace. Later versions add figures at the end.
typedef struct {
  // Its number in the store.
  uint64_t id;
  // Entries in tables, all versions and deletes counted.
  uint64_t entries;
  // Deletes among them.
  uint64_t tombstones;
  // Sorted runs; a settled keyspace has one, or none, and perhaps some small ones, less than 7 % of it.
  uint64_t runs;
  // Tables in them.
  uint64_t tables;
  // Bytes of those files.
  uint64_t table_bytes;
  // Bytes of keys and values in them before compression; of values in the log, their pointers.
  uint64_t raw_bytes;
  // Tables that pack values with a dictionary for LZ4.
  uint64_t lz4_tables;
  // Tables that pack values with a dictionary for Zstandard.
  uint64_t zstd_tables;
  // Entries not in tables yet.
  uint64_t memtable_entries;
  // Bytes of their keys and values.
  uint64_t memtable_bytes;
  // From how many bytes on a value stays in the log.
  uint64_t blob_threshold;
} esker_keyspace_stat;

// Told how far a call is, in bytes done and in all. Returns 0 to go on; anything else stops the call,
// which then gives ESKER_ABORTED. It may use the store; it may not throw or longjmp.
typedef int (*esker_progress)(void *state, uint64_t done, uint64_t total);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library, as "0.1.0". Static.
const char *esker_version(void);

// The name of a code in lower case, as "corruption"; "unknown" for a number that is no code. Static.
const char *esker_code_name(esker_code code);

// The code that the call returned with this error; ESKER_OK for NULL.
esker_code esker_error_code(const esker_error *error);

// The operating system's number (errno) of an error with ESKER_IO, and of the one that stopped writes
// (ESKER_HALTED); 0 when there is none, and for NULL.
int esker_error_os_code(const esker_error *error);

// What went wrong, where, and the way out: one line in English, NUL-terminated, which lives as long as
// the error; empty for NULL.
const char *esker_error_message(const esker_error *error);

// Gives an error back.
void esker_error_free(esker_error **error);

// Gives a text back, and sets both of its fields to 0. Nothing happens to NULL, or to a text that is
// set so.
void esker_string_free(esker_string *string);

// Gives back an array of `count` texts, as esker_db_keyspaces makes it, and sets the variable to NULL.
void esker_strings_free(esker_string **names,
                        size_t count);

// Options with their defaults, for esker_options_free. NULL only after a bug.
esker_options *esker_options_new(void);

// Gives options back. Stores that were opened with them keep what they need.
void esker_options_free(esker_options **options);

// Memory that the store may use for itself: write buffers, indexes, merge work. In bytes, 1 MiB at
// least, 128 MiB by default. Mapped files are the page cache's and not counted.
//
// Every function that sets an option gives ESKER_INVALID_ARGUMENT for a value that cannot be, and then
// changes nothing.
esker_code esker_options_set_memory(esker_options *options,
                                    uint64_t bytes);

// Durability of writes that are asked for with ESKER_DURABILITY_DEFAULT. Buffered by default.
esker_code esker_options_set_durability(esker_options *options, esker_durability durability);

// Whether a store is made where there is none. True by default.
esker_code esker_options_set_create_if_missing(esker_options *options, bool yes);

// Whether a store that is there is an error (ESKER_STORE_EXISTS). False by default.
esker_code esker_options_set_error_if_exists(esker_options *options, bool yes);

// Whether opening verifies all tables, and takes any doubt for damage. False by default; opening then
// reads the whole store.
esker_code esker_options_set_paranoid_checks(esker_options *options,
                                             bool yes);

// Whether closing writes what is in memory to tables, so that the next open has nothing to recover from
// the log. True by default; nothing is lost without. To be unset where closing must not wait for a
// comparator: the store's own thread calls it then, and a lock that both the comparator and whoever
// closes the store take would stop both.
esker_code esker_options_set_flush_on_close(esker_options *options,
                                            bool yes);

// Whether the store is opened without writing anything; writes give ESKER_READ_ONLY. False by default.
esker_code esker_options_set_read_only(esker_options *options,
                                       bool yes);

// Compression of keyspaces that were made without one of their own, the default keyspace among them.
// LZ4 by default. Not stored: it holds from this opening to the next.
esker_code esker_options_set_compression(esker_options *options,
                                         esker_compression compression);

// Smallest block of a table: in bytes, a multiple of 4096 from 4096 (the default) to 65536.
esker_code esker_options_set_block_size(esker_options *options, size_t bytes);

// Size to which segments of the log grow: in bytes, 64 KiB to 4 GiB. By default a quarter of the
// memory or of the log that may wait for its flush, whichever is less, up to 32 MiB, or an eighth of it up to 64 MiB
// where that is more; 2 MiB and a 64th of that log at least.
esker_code esker_options_set_segment_size(esker_options *options,
                                          uint64_t bytes);

// From how many bytes on a value is written once, and stays in the log. 64 at least, 4096 by default.
esker_code esker_options_set_blob_threshold(esker_options *options,
                                            size_t bytes);

// Order of the default keyspace, fixed when the store is made. Bytewise by default. Takes the place of
// a comparator that was set.
esker_code esker_options_set_order(esker_options *options,
                                   esker_order order);

// An order of the program's own for the default keyspace. The struct and its name are copied; `state`
// belongs to the library from then on, until it calls `destroy`. On an error it stays the caller's.
// Whether the name may be is asked when a store is opened, with an error that says why not.
esker_code esker_options_set_comparator(esker_options *options,
                                        const esker_comparator *comparator);

// The order of a keyspace that was made with one of the program's own, by its name; needed to open its
// store. Otherwise as esker_options_set_comparator.
esker_code esker_options_set_keyspace_comparator(esker_options *options,
                                                 const char *keyspace,
                                                 const esker_comparator *comparator);

// Keyspace options with their defaults, for esker_keyspace_options_free. NULL only after a bug.
esker_keyspace_options *esker_keyspace_options_new(void);

// Gives keyspace options back.
void esker_keyspace_options_free(esker_keyspace_options **options);

// Compression of the keyspace's values, whatever the store is opened with. That of the store by
// default.
esker_code esker_keyspace_options_set_compression(esker_keyspace_options *options,
                                                  esker_compression compression);

// From how many bytes on a value stays in the log. 64 at least; that of the store by default.
esker_code esker_keyspace_options_set_blob_threshold(esker_keyspace_options *options, size_t bytes);

// Order of the keyspace's keys. Bytewise by default.
esker_code esker_keyspace_options_set_order(esker_keyspace_options *options, esker_order order);

// An order of the program's own; as esker_options_set_comparator.
esker_code esker_keyspace_options_set_comparator(esker_keyspace_options *options,
                                                 const esker_comparator *comparator);

// Opens the store in the directory `path`, and makes it when it is missing. `options` NULL: the
// defaults.
//
// Errors: ESKER_NOT_A_STORE, ESKER_FOREIGN_STORE, ESKER_STORE_EXISTS, ESKER_LOCKED, ESKER_UNSUPPORTED,
// ESKER_COMPARATOR, ESKER_CORRUPTION, ESKER_IO. *db is then NULL.
esker_code esker_db_open(const char *path,
                         const esker_options *options,
                         esker_db **db,
                         esker_error **error);

// Flushes and closes the store, also for its other handles: they give ESKER_CLOSED from then on and
// have to be closed all the same. Values and open cursors keep what they point to, and the directory's
// lock with it.
//
// On an error too the store is closed and *db NULL; what was written is in the log, and is found at
// the next open. Only when a comparator calls this (ESKER_COMPARATOR), or *db is no handle of a store
// (ESKER_INVALID_ARGUMENT), everything stays as it is.
esker_code esker_db_close(esker_db **db,
                          esker_error **error);

// Writes everything into tables. Returns when that is done, and durable.
esker_code esker_db_flush(const esker_db *db, esker_error **error);

// Makes everything written so far durable.
esker_code esker_db_sync(const esker_db *db, esker_error **error);

// Flushes, and merges what is in tables then until nothing is left to do about it. What is written meanwhile is not waited for.
esker_code esker_db_wait_for_compactions(const esker_db *db,
                                         esker_error **error);

// Goes on after an error that stopped writes (ESKER_HALTED), once its cause is removed.
esker_code esker_db_resume(const esker_db *db, esker_error **error);

// Makes a second store in the directory `dir`, which must not exist, that holds what this one holds
// now. Files that never change are shared (hard links) where the file system can.
esker_code esker_db_checkpoint(const esker_db *db, const char *dir, esker_error **error);

// A property as text: `esker.stats`, `esker.levels`, `esker.sequence`, `esker.disk-bytes`,
// `esker.memory-used`, `esker.write-amplification`, `esker.halted`. ESKER_NOT_FOUND when there is none
// of that name; *value then has no text. The text is the caller's (esker_string_free).
esker_code esker_db_property(const esker_db *db,
                             const char *name,
                             esker_string *value,
                             esker_error **error);

// The names of all keyspaces, "default" first, then in order of creation: *names points to *count
// texts. The array is the caller's (esker_strings_free).
esker_code esker_db_keyspaces(const esker_db *db,
                              esker_string **names,
                              size_t *count,
                              esker_error **error);

// Opens the keyspace called `name`; NULL is the default one, which every store has. Errors:
// ESKER_KEYSPACE when there is none of that name.
esker_code esker_keyspace_open(const esker_db *db,
                               const char *name,
                               esker_keyspace **keyspace,
                               esker_error **error);

// Makes a keyspace, durable on return, and opens it. `name` has 1 to 255 bytes of UTF-8; `options`
// NULL: the defaults. `keyspace` NULL: it is made only. Errors: ESKER_KEYSPACE when one of that name
// is there.
esker_code esker_keyspace_create(const esker_db *db,
                                 const char *name,
                                 const esker_keyspace_options *options,
                                 esker_keyspace **keyspace,
                                 esker_error **error);

// Drops a keyspace and all its data, durable on return. Calls through its handles give ESKER_KEYSPACE
// from then on. The default keyspace stays (ESKER_INVALID_ARGUMENT).
esker_code esker_keyspace_drop(const esker_db *db,
                               const char *name,
                               esker_error **error);

// Opens the keyspace of a handle as a snapshot sees it, for reading; writes through it give
// ESKER_READ_ONLY. The handle keeps the snapshot: both that and `keyspace` may be closed first.
// Errors: ESKER_INVALID_ARGUMENT when the snapshot is of another store, ESKER_CLOSED, ESKER_KEYSPACE.
esker_code esker_keyspace_at(const esker_keyspace *keyspace,
                             const esker_snapshot *snapshot,
                             esker_keyspace **view,
                             esker_error **error);

// Closes a handle on a keyspace. When it is the last handle of its store that is open, the store is
// closed with it. Called from a comparator it does nothing.
void esker_keyspace_close(esker_keyspace **keyspace);

// About how many bytes of files the keys from `start` on and below `end` take, what is not flushed yet included. NULL is no
// bound.
esker_code esker_approximate_size(const esker_keyspace *keyspace,
                                  const void *start,
                                  size_t start_len,
                                  const void *end,
                                  size_t end_len,
                                  uint64_t *bytes,
                                  esker_error **error);

// Rewrites the tables that hold keys from `start` on and below `end` into one run: drops what is
// deleted or overwritten there, and packs values as the keyspace does now. NULL is no bound. Returns
// when done.
esker_code esker_compact_range(const esker_keyspace *keyspace,
                               const void *start,
                               size_t start_len,
                               const void *end,
                               size_t end_len,
                               esker_error **error);

// Releases a value, which is empty afterwards. Nothing happens to NULL, to one that was released, or
// to one that is all zeros.
void esker_value_release(esker_value *value);

// Moves a value to another place. What was there is overwritten, not released; `from` is empty
// afterwards. `to` NULL: the value is released. The bytes may be elsewhere afterwards: read `data`
// again.
void esker_value_move(esker_value *to, esker_value *from);

// The value of a key, not copied. *value is overwritten, not released first; it is the caller's
// (esker_value_release), and empty on anything but ESKER_OK. ESKER_NOT_FOUND: the key has no value.
//
// Allocates nothing, but for values that are stored compressed. Errors: ESKER_CORRUPTION,
// ESKER_CLOSED, ESKER_KEYSPACE.
esker_code esker_get(const esker_keyspace *keyspace,
                     const void *key,
                     size_t key_len,
                     esker_value *value,
                     esker_error **error);

// Copies the value of a key into `buffer`, `capacity` bytes at most. *len is the length of the whole
// value: when it is above `capacity` the value was cut, which is ESKER_OK too. `buffer` may be NULL
// when `capacity` is 0.
esker_code esker_get_into(const esker_keyspace *keyspace,
                          const void *key,
                          size_t key_len,
                          void *buffer,
                          size_t capacity,
                          size_t *len,
                          esker_error **error);

// Whether a key has a value: ESKER_OK or ESKER_NOT_FOUND. Cheaper than esker_get for large values.
esker_code esker_contains(const esker_keyspace *keyspace,
                          const void *key,
                          size_t key_len,
                          esker_error **error);

// The values of `count` keys as of one moment: keys[i] has key_lens[i] bytes, and its value goes to
// values[i], which is overwritten; `data` is NULL there when the key has none. Each is the caller's
// (esker_value_release). Faster than one esker_get after the other. On an error all are empty.
esker_code esker_multi_get(const esker_keyspace *keyspace,
                           size_t count,
                           const void *const *keys,
                           const size_t *key_lens,
                           esker_value *values,
                           esker_error **error);

// Gives a key a value: up to 64 KiB and up to 1 GiB, both may be empty (and NULL then).
//
// Errors: ESKER_INVALID_ARGUMENT (too long), ESKER_READ_ONLY, ESKER_HALTED, ESKER_IO, ESKER_CLOSED,
// ESKER_KEYSPACE. After an error of a synced write it is not known whether the write survives.
esker_code esker_put(const esker_keyspace *keyspace,
                     const void *key,
                     size_t key_len,
                     const void *value,
                     size_t value_len,
                     esker_durability durability,
                     esker_error **error);

// Takes the value of a key away, if it has one. ESKER_OK also when it had none. Errors: as for
// esker_put.
esker_code esker_delete(const esker_keyspace *keyspace,
                        const void *key,
                        size_t key_len,
                        esker_durability durability,
                        esker_error **error);

// An empty batch, for esker_batch_free. NULL only after a bug.
esker_batch *esker_batch_new(void);

// Gives a batch back.
void esker_batch_free(esker_batch **batch);

// Adds: give a key this value in `keyspace`; NULL is the default one of whatever store the batch is
// written to. Key and value are copied. Errors: ESKER_INVALID_ARGUMENT (too long), ESKER_READ_ONLY
// (the keyspace as a snapshot sees it); the batch is then as it was.
esker_code esker_batch_put(esker_batch *batch,
                           const esker_keyspace *keyspace,
                           const void *key,
                           size_t key_len,
                           const void *value,
                           size_t value_len,
                           esker_error **error);

// Adds: take the value of a key away. Otherwise as esker_batch_put.
esker_code esker_batch_delete(esker_batch *batch,
                              const esker_keyspace *keyspace,
                              const void *key,
                              size_t key_len,
                              esker_error **error);

// Removes everything from a batch; its memory stays for the next use.
void esker_batch_clear(esker_batch *batch);

// How many writes a batch has; 0 for NULL.
size_t esker_batch_count(const esker_batch *batch);

// How many bytes of the log a batch will take; 0 when it is empty, or NULL.
size_t esker_batch_byte_len(const esker_batch *batch);

// Writes a batch: all of it or none, across keyspaces. The batch stays as it is, to be written again,
// cleared or freed.
//
// Errors: ESKER_INVALID_ARGUMENT when it names keyspaces of another store, or has 4 GiB and more;
// those of esker_put.
esker_code esker_write(const esker_db *db,
                       const esker_batch *batch,
                       esker_durability durability,
                       esker_error **error);

// Takes a snapshot of the store as it is now.
esker_code esker_snapshot_open(const esker_db *db, esker_snapshot **snapshot, esker_error **error);

// The number of the last commit that a snapshot sees; 0 for NULL.
uint64_t esker_snapshot_sequence(const esker_snapshot *snapshot);

// Closes a snapshot. Handles that esker_keyspace_at made of it keep what they see.
void esker_snapshot_close(esker_snapshot **snapshot);

// Opens a cursor over a keyspace; with `keys_only` it fetches no values. It sees nothing of later
// writes, and keeps what it walks over, also when the store is closed. Errors: ESKER_CLOSED,
// ESKER_KEYSPACE.
esker_code esker_cursor_open(const esker_keyspace *keyspace,
                             bool keys_only,
                             esker_cursor **cursor,
                             esker_error **error);

// Closes a cursor.
void esker_cursor_close(esker_cursor **cursor);

// Goes to the first entry. ESKER_OK and *entry, or ESKER_NOT_FOUND when there is none; *entry is then
// all zero. `entry` may be NULL. The same goes for the other moves.
esker_code esker_cursor_first(esker_cursor *cursor,
                              esker_entry *entry,
                              esker_error **error);

// Goes to the last entry.
esker_code esker_cursor_last(esker_cursor *cursor, esker_entry *entry, esker_error **error);

// Goes to the first entry at or after a key.
esker_code esker_cursor_seek(esker_cursor *cursor,
                             const void *key,
                             size_t key_len,
                             esker_entry *entry,
                             esker_error **error);

// Goes to the last entry at or before a key.
esker_code esker_cursor_seek_for_prev(esker_cursor *cursor,
                                      const void *key,
                                      size_t key_len,
                                      esker_entry *entry,
                                      esker_error **error);

// Goes one entry on; ESKER_NOT_FOUND past the last one, and when the cursor was on none.
esker_code esker_cursor_next(esker_cursor *cursor, esker_entry *entry, esker_error **error);

// Goes one entry back; ESKER_NOT_FOUND before the first one, and when the cursor was on none.
esker_code esker_cursor_prev(esker_cursor *cursor, esker_entry *entry, esker_error **error);

// Where the cursor is: the entry, or ESKER_NOT_FOUND when it is on none.
esker_code esker_cursor_entry(const esker_cursor *cursor, esker_entry *entry, esker_error **error);

// Copies as many entries as fit into `buffer`, from the one the cursor is on, in the direction it is
// told: each is u32 key_len, u32 value_len (in the byte order of the machine), the key, the value, one
// behind the other, unaligned. Which is one call for many entries, for languages where a call costs
// much.
//
// *count is how many there are, *used how many bytes they take. The cursor is then on the first entry
// that did not fit, or, past the end, on none, and *done is true. When not even one fits, *count is 0
// and *used is how many bytes it needs. An error that is met behind entries that fit is given by the
// next call. `buffer` may be NULL when `capacity` is 0.
esker_code esker_cursor_read(esker_cursor *cursor,
                             bool backward,
                             void *buffer,
                             size_t capacity,
                             size_t *used,
                             size_t *count,
                             bool *done,
                             esker_error **error);

// Loads entries in ascending order straight into tables, past the log. All of them appear at once, and
// durably, when the call returns; on an error, none (where writes stop by it, the next open tells). Values of keys that are there are replaced.
// *loaded, which may be NULL, is how many there were.
//
// Errors: ESKER_ABORTED when `next` says stop, ESKER_INVALID_ARGUMENT when a key is not above the one
// before it, or too long; ESKER_READ_ONLY, ESKER_HALTED, ESKER_IO, ESKER_CLOSED, ESKER_KEYSPACE.
esker_code esker_bulk_load(const esker_keyspace *keyspace,
                           esker_next_entry next,
                           void *state,
                           uint64_t *loaded,
                           esker_error **error);

// Figures of a store. `size` is sizeof(esker_stats), so that programs and libraries of different
// versions fit.
esker_code esker_db_stats(const esker_db *db, esker_stats *stats, size_t size, esker_error **error);

// Figures of a keyspace, as it is now. `size` is sizeof(esker_keyspace_stat). Errors: ESKER_CLOSED,
// ESKER_KEYSPACE.
esker_code esker_keyspace_stats(const esker_keyspace *keyspace,
                                esker_keyspace_stat *stats,
                                size_t size,
                                esker_error **error);

// The name of the order of a keyspace's keys: "esker.bytewise", "esker.reverse", or that of the
// comparator it was made with. For languages that cannot ask the library which of two keys comes first.
// It is the caller's (esker_string_free). Errors: ESKER_CLOSED, ESKER_KEYSPACE.
esker_code esker_keyspace_comparator(const esker_keyspace *keyspace,
                                     esker_string *name,
                                     esker_error **error);

// Reads and checks the tables of an open store and what they refer to: checksums, order, counts, references.
// ESKER_OK when it is sound; ESKER_CORRUPTION when it is not, with an error that has the first problem.
//
// `progress` may be NULL; stopping does no harm. *report, which may be NULL, is text for people: a
// line of figures, then a line for each problem. It is the caller's (esker_string_free), also with
// ESKER_CORRUPTION.
esker_code esker_db_verify(const esker_db *db,
                           esker_progress progress,
                           void *state,
                           esker_string *report,
                           esker_error **error);

// As esker_db_verify, of a store that is not open for writing, however damaged it is. Changes nothing.
// Of `options`, which may be NULL, it takes the comparators; a keyspace whose comparator is missing
// counts as a problem.
esker_code esker_verify(const char *path,
                        const esker_options *options,
                        esker_progress progress,
                        void *state,
                        esker_string *report,
                        esker_error **error);

// Saves what is intact of a damaged store that is not open, and makes it open again; a sound one stays
// as it is. Of `options`, which may be NULL, it takes the comparators, and for what it writes block
// size and compression.
//
// *report, which may be NULL, is text for people: a line that begins "sound" or "repaired", then a
// line for each problem, each loss ("lost: ...") and each thing that was not checked for want of a
// comparator. It is the caller's (esker_string_free). ESKER_OK also when something was lost: damaged
// files are kept under `lost/` in the store. After an error the store is as it was, or repaired.
esker_code esker_repair(const char *path,
                        const esker_options *options,
                        esker_string *report,
                        esker_error **error);

// Removes the store in the directory `path`, which must not be open: all its files, and the directory
// when nothing else is in it. ESKER_OK also when nothing is there.
esker_code esker_destroy(const char *path,
                         esker_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ESKER_H */
