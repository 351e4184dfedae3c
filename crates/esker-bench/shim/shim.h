/* What a shim offers: the calls of a store in plain functions, for libraries whose C interface is
 * methods in structs, which only their own header can lay out. One file per library implements it.
 *
 * Functions return 0, NONE where there is no (further) entry, or the library's code of an error,
 * for shim_error to explain. Keys and values handed out live until the next call on the same
 * reader. A store may be shared by threads; a writer or reader is one thread's own.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NONE (-1)

typedef struct { const void *data; size_t size; } shim_bytes;

typedef struct {
  const char *dir;
  uint64_t memory;        /* bytes of the library's cache */
  uint32_t page_size;     /* 0: the library's choice */
  int synced;             /* a write returns once it is on the device */
  int bulk;               /* ascending writers of an empty store may use the bulk path */
  int shared;             /* several threads use the store; otherwise the one that opened it */
  const char *connection; /* configuration in the library's own words, or null */
  const char *table;
} shim_options;

typedef struct shim_store shim_store;
typedef struct shim_writer shim_writer;
typedef struct shim_reader shim_reader;

/* The version loaded; null when it is not the one that this file was compiled for. */
const char *shim_version(void);
const char *shim_error(int code);

int shim_open(const shim_options *options, shim_store **store);
int shim_settle(shim_store *store);
/* Gives what a settled store has to spare back, and fills its pages, as far as the library has a call for that
 * that does not cost more than it gives. */
int shim_compact(shim_store *store);
/* Closes a store of which no reader or writer is left, and opens it again with another connection
 * configuration. NONE, and nothing has changed, where a library has no use for that. After an error the
 * store can be closed and nothing else. */
int shim_reopen(shim_store *store, const shim_options *options);
int shim_close(shim_store *store);

int shim_writer_new(shim_store *store, int ascending, shim_writer **writer);
int shim_put(shim_writer *writer, const void *key, size_t key_size, const void *value, size_t size);
int shim_delete(shim_writer *writer, const void *key, size_t key_size);
int shim_batch_put(shim_writer *writer, const void *key, size_t key_size, const void *value,
                   size_t size);
int shim_batch_commit(shim_writer *writer);
void shim_writer_free(shim_writer *writer);

int shim_reader_new(shim_store *store, shim_reader **reader);
int shim_get(shim_reader *reader, const void *key, size_t key_size, shim_bytes *value);
/* Stands on the first entry at or after a key. */
int shim_seek(shim_reader *reader, const void *key, size_t size, shim_bytes *k, shim_bytes *v);
/* Stands on the first or the last entry, to walk over all. */
int shim_start(shim_reader *reader, int backwards, shim_bytes *k, shim_bytes *v);
/* Moves on, the way that shim_start or shim_seek began. */
int shim_step(shim_reader *reader, shim_bytes *k, shim_bytes *v);
/* Gives up the place, and what holds it. */
int shim_leave(shim_reader *reader);
void shim_reader_free(shim_reader *reader);

/* A batch under way. Entries are kept until the commit: a transaction that has to give way to
 * another one is then done over. */
typedef struct { char *data; size_t used, room, entries; } shim_batch;
typedef struct { size_t key, value; } shim_head;

static int batch_add(shim_batch *batch, const void *key, size_t key_size, const void *value,
                     size_t size) {
  shim_head head = {key_size, size};
  size_t need = sizeof head + key_size + size;
  if (batch->room - batch->used < need) {
    size_t room = (batch->used + need) * 2;
    char *data = realloc(batch->data, room);
    if (!data) return 12; /* ENOMEM */
    batch->data = data;
    batch->room = room;
  }
  char *to = batch->data + batch->used;
  memcpy(to, &head, sizeof head);
  memcpy(to + sizeof head, key, key_size);
  if (size) memcpy(to + sizeof head + key_size, value, size);
  batch->used += need;
  batch->entries++;
  return 0;
}

/* The entry at `at`, which moves on to the next; 0 at the end. */
static int batch_next(const shim_batch *batch, size_t *at, shim_bytes *key, shim_bytes *value) {
  shim_head head;
  if (*at >= batch->used) return 0;
  memcpy(&head, batch->data + *at, sizeof head);
  key->data = batch->data + *at + sizeof head;
  key->size = head.key;
  value->data = (const char *)key->data + head.key;
  value->size = head.value;
  *at += sizeof head + head.key + head.value;
  return 1;
}

static void batch_clear(shim_batch *batch) { batch->used = batch->entries = 0; }
