// What Go calls. Results come back by value, so that no variable has to be made on Go's heap for them, and what would be a
// call for each write, key or entry is one call for many. Keys and values are bytes by their type: of what is behind a void
// pointer, Go looks whether it has pointers, in all of the object that the bytes are a part of, and panics when it has. Nothing here keeps a pointer of Go's after it has returned.
#ifndef ESKER_GO_GLUE_H
#define ESKER_GO_GLUE_H

#include <esker.h>

typedef struct {
  esker_code code;
  esker_error *error;
} glue_result;

typedef struct {
  esker_code code;
  size_t len;
  esker_error *error;
} glue_length;

typedef struct {
  esker_code code;
  uint64_t size;
  esker_error *error;
} glue_size;

typedef struct {
  esker_code code;
  bool done;
  size_t used, count;
  // Where not even one entry fits: its key, until the cursor moves.
  const uint8_t *key;
  size_t key_len;
  esker_error *error;
} glue_chunk;

typedef struct {
  esker_code code;
  esker_cursor *cursor;
  esker_error *error;
} glue_cursor;

typedef struct {
  esker_code code;
  esker_entry entry;
  esker_error *error;
} glue_entry;

typedef struct {
  esker_code code;
  esker_value *values;
  esker_error *error;
} glue_values;

// Where a cursor goes.
enum { GLUE_FIRST, GLUE_LAST, GLUE_SEEK, GLUE_SEEK_FOR_PREV, GLUE_NEXT, GLUE_PREV };

glue_length glue_get_into(const esker_keyspace *ks, const uint8_t *key, size_t key_len, uint8_t *buffer,
                          size_t capacity);
glue_result glue_contains(const esker_keyspace *ks, const uint8_t *key, size_t key_len);
glue_result glue_put(const esker_keyspace *ks, const uint8_t *key, size_t key_len, const uint8_t *value,
                     size_t value_len, esker_durability durability);
glue_result glue_delete(const esker_keyspace *ks, const uint8_t *key, size_t key_len, esker_durability durability);

// NULL is no bound.
glue_result glue_compact_range(const esker_keyspace *ks, const uint8_t *from, size_t from_len, const uint8_t *to,
                               size_t to_len);
glue_size glue_approximate_size(const esker_keyspace *ks, const uint8_t *from, size_t from_len, const uint8_t *to,
                                size_t to_len);

// The keys lie one behind the other; their lengths are in `lens`. Also the array is to be given back.
glue_values glue_multi_get(const esker_keyspace *ks, size_t count, const uint8_t *keys, const size_t *lens);
void glue_values_free(esker_value *values, size_t count);

// Writes `len` bytes of operations: each is u32 keyspace * 2 + is_delete, u32 key_len, u32 value_len, key, value.
// Keyspace 0 is the default one, n is keyspaces[n - 1].
glue_result glue_write(const esker_db *db, const uint8_t *operations, size_t len,
                       const esker_keyspace *const *keyspaces, esker_durability durability);

// Opens a cursor and moves it; NOT_FOUND when there is nothing there, and then no cursor.
glue_cursor glue_scan(const esker_keyspace *ks, bool keys_only, int where, const uint8_t *key, size_t key_len);
glue_chunk glue_read(esker_cursor *cursor, bool backward, uint8_t *buffer, size_t capacity);
glue_entry glue_move(esker_cursor *cursor, int where, const uint8_t *key, size_t key_len);

// Entries of a bulk load on their way from a goroutine, which pushes them in chunks, to the load, which runs in another: so the
// program's iterator runs where it was written, and may do there what it likes.
typedef struct glue_feeder glue_feeder;
glue_feeder *glue_feeder_new(void);
void glue_feeder_free(glue_feeder *feeder);
// Returns once the load has asked for its first entry, or has ended.
void glue_feeder_wait(glue_feeder *feeder);
// What became of a chunk: the load has it, or ended before it, or there was no memory for it, of which the load knows nothing.
enum { GLUE_TAKEN, GLUE_ENDED, GLUE_NO_MEMORY };
// Copies a chunk: u32 key_len, u32 value_len, key, value, and so on. Waits until the one before it is used up.
int glue_feeder_push(glue_feeder *feeder, const uint8_t *entries, size_t len);
// No more entries: the load ends well, or is called off.
void glue_feeder_end(glue_feeder *feeder, bool abort);
glue_length glue_bulk_load(const esker_keyspace *ks, glue_feeder *feeder);

// Verification that stops once *stop is not 0.
glue_result glue_db_verify(const esker_db *db, int32_t *stop, esker_string *report);
glue_result glue_verify(const char *path, const esker_options *options, int32_t *stop, esker_string *report);

#endif
