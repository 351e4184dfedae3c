/* WiredTiger. One session and one cursor a thread; raw keys and values; log records go to the
 * operating system or the device at each commit, as the connection is configured. */
#include "shim.h"
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <wiredtiger.h>

#define URI "table:kv"
/* By default it leaves files alone that have less than 20 MB to give. */
#if WIREDTIGER_VERSION_MAJOR > 11 || (WIREDTIGER_VERSION_MAJOR == 11 && WIREDTIGER_VERSION_MINOR >= 3)
#define COMPACT "timeout=0,free_space_target=1MB"
#else
#define COMPACT "timeout=0"
#endif
/* A transaction that conflicts is done over; nobody conflicts for ever. */
#define TRIES 100000

struct shim_store { WT_CONNECTION *connection; int bulk, lsm; };
struct shim_writer { WT_SESSION *session; WT_CURSOR *cursor; int bulk; shim_batch batch; };
struct shim_reader { WT_SESSION *session; WT_CURSOR *cursor; int backwards; };

const char *shim_version(void) {
  static char text[64];
  int major, minor, patch;
  wiredtiger_version(&major, &minor, &patch);
  if (major != WIREDTIGER_VERSION_MAJOR || minor != WIREDTIGER_VERSION_MINOR) return NULL;
  snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
  return text;
}

const char *shim_error(int code) { return wiredtiger_strerror(code); }

int shim_open(const shim_options *options, shim_store **out) {
  WT_SESSION *session;
  int code;
  shim_store *store = calloc(1, sizeof *store);
  if (!store) return ENOMEM;
  store->bulk = options->bulk;
  store->lsm = strstr(options->table, "type=lsm") != NULL;
  code = wiredtiger_open(options->dir, NULL, options->connection, &store->connection);
  if (code) {
    free(store);
    return code;
  }
  code = store->connection->open_session(store->connection, NULL, NULL, &session);
  if (!code) {
    code = session->create(session, URI, options->table);
    int closed = session->close(session, NULL);
    if (!code) code = closed;
  }
  if (code) {
    store->connection->close(store->connection, NULL);
    free(store);
    return code;
  }
  *out = store;
  return 0;
}

int shim_settle(shim_store *store) {
  WT_SESSION *session;
  int code = store->connection->open_session(store->connection, NULL, NULL, &session);
  if (code) return code;
  /* Merges the chunks of an LSM tree; a B-tree owes its checkpoint only. */
  if (store->lsm) code = session->compact(session, URI, "timeout=0");
  if (!code) code = session->checkpoint(session, NULL);
  int closed = session->close(session, NULL);
  return code ? code : closed;
}

int shim_compact(shim_store *store) {
  WT_SESSION *session;
  int code;
  if (store->lsm) return 0; /* settling was that */
  code = store->connection->open_session(store->connection, NULL, NULL, &session);
  if (code) return code;
  code = session->compact(session, URI, COMPACT);
  /* Somebody else takes a checkpoint, or nothing can be had: it promises no more than to try. */
  if (code == EBUSY) code = 0;
  if (!code) code = session->checkpoint(session, NULL);
  int closed = session->close(session, NULL);
  return code ? code : closed;
}

int shim_reopen(shim_store *store, const shim_options *options) {
  int code = store->connection->close(store->connection, NULL);
  store->connection = NULL;
  /* What the cache took is not the library's any more, but still the allocator's. */
  malloc_trim(0);
  if (!code) code = wiredtiger_open(options->dir, NULL, options->connection, &store->connection);
  return code;
}

int shim_close(shim_store *store) {
  int code = store->connection ? store->connection->close(store->connection, NULL) : 0;
  free(store);
  return code;
}

static int open_cursor(shim_store *store, const char *how, WT_SESSION **session,
                       WT_CURSOR **cursor) {
  int code = store->connection->open_session(store->connection, NULL, NULL, session);
  if (code) return code;
  code = (*session)->open_cursor(*session, URI, NULL, how, cursor);
  if (code) (*session)->close(*session, NULL);
  return code;
}

int shim_writer_new(shim_store *store, int ascending, shim_writer **out) {
  int code = 0;
  shim_writer *writer = calloc(1, sizeof *writer);
  if (!writer) return ENOMEM;
  if (ascending && store->bulk)
    writer->bulk = !open_cursor(store, "bulk", &writer->session, &writer->cursor);
  if (!writer->bulk) code = open_cursor(store, NULL, &writer->session, &writer->cursor);
  if (code) {
    free(writer);
    return code;
  }
  *out = writer;
  return 0;
}

static int insert(shim_writer *writer, shim_bytes key, shim_bytes value) {
  WT_ITEM k = {.data = key.data, .size = key.size}, v = {.data = value.data, .size = value.size};
  writer->cursor->set_key(writer->cursor, &k);
  writer->cursor->set_value(writer->cursor, &v);
  return writer->cursor->insert(writer->cursor);
}

int shim_put(shim_writer *writer, const void *key, size_t key_size, const void *value,
             size_t size) {
  shim_bytes k = {key, key_size}, v = {value, size};
  int code, tries = TRIES;
  while ((code = insert(writer, k, v)) == WT_ROLLBACK && tries--) sched_yield();
  return code;
}

int shim_delete(shim_writer *writer, const void *key, size_t key_size) {
  WT_ITEM k = {.data = key, .size = key_size};
  int code, tries = TRIES;
  do {
    writer->cursor->set_key(writer->cursor, &k);
    code = writer->cursor->remove(writer->cursor);
  } while (code == WT_ROLLBACK && tries--);
  return code == WT_NOTFOUND ? 0 : code;
}

int shim_batch_put(shim_writer *writer, const void *key, size_t key_size, const void *value,
                   size_t size) {
  return batch_add(&writer->batch, key, key_size, value, size);
}

static int batch_write(shim_writer *writer) {
  shim_bytes key, value;
  size_t at = 0;
  while (batch_next(&writer->batch, &at, &key, &value)) {
    int code = insert(writer, key, value);
    if (code) return code;
  }
  return 0;
}

int shim_batch_commit(shim_writer *writer) {
  WT_SESSION *session = writer->session;
  int code = 0, tries = TRIES;
  if (!writer->batch.entries) return 0;
  if (writer->bulk) {
    /* Bulk cursors know no transactions. */
    code = batch_write(writer);
    batch_clear(&writer->batch);
    return code;
  }
  do {
    code = session->begin_transaction(session, NULL);
    if (code) break;
    code = batch_write(writer);
    if (code)
      session->rollback_transaction(session, NULL);
    else
      code = session->commit_transaction(session, NULL);
  } while (code == WT_ROLLBACK && tries--);
  batch_clear(&writer->batch);
  return code;
}

void shim_writer_free(shim_writer *writer) {
  writer->session->close(writer->session, NULL); /* and its cursor */
  free(writer->batch.data);
  free(writer);
}

int shim_reader_new(shim_store *store, shim_reader **out) {
  shim_reader *reader = calloc(1, sizeof *reader);
  if (!reader) return ENOMEM;
  int code = open_cursor(store, NULL, &reader->session, &reader->cursor);
  if (code) {
    free(reader);
    return code;
  }
  *out = reader;
  return 0;
}

/* What a call came to that moves the cursor, and the entry there. */
static int entry(shim_reader *reader, int code, shim_bytes *k, shim_bytes *v) {
  WT_ITEM key, value;
  if (code) return code == WT_NOTFOUND ? NONE : code;
  if (k) {
    code = reader->cursor->get_key(reader->cursor, &key);
    if (code) return code;
    k->data = key.data;
    k->size = key.size;
  }
  code = reader->cursor->get_value(reader->cursor, &value);
  if (code) return code;
  v->data = value.data;
  v->size = value.size;
  return 0;
}

int shim_get(shim_reader *reader, const void *key, size_t key_size, shim_bytes *value) {
  WT_ITEM k = {.data = key, .size = key_size};
  /* Gives up the place of the search before, and its view with it: on the same page the next search would keep both. */
  int code = reader->cursor->reset(reader->cursor);
  if (code) return code;
  reader->cursor->set_key(reader->cursor, &k);
  return entry(reader, reader->cursor->search(reader->cursor), NULL, value);
}

int shim_seek(shim_reader *reader, const void *key, size_t size, shim_bytes *k, shim_bytes *v) {
  WT_ITEM item = {.data = key, .size = size};
  int where = 0, code;
  reader->backwards = 0;
  reader->cursor->set_key(reader->cursor, &item);
  code = reader->cursor->search_near(reader->cursor, &where);
  if (!code && where < 0) code = reader->cursor->next(reader->cursor);
  return entry(reader, code, k, v);
}

int shim_start(shim_reader *reader, int backwards, shim_bytes *k, shim_bytes *v) {
  int code = reader->cursor->reset(reader->cursor);
  reader->backwards = backwards;
  return code ? code : shim_step(reader, k, v);
}

int shim_step(shim_reader *reader, shim_bytes *k, shim_bytes *v) {
  WT_CURSOR *cursor = reader->cursor;
  return entry(reader, reader->backwards ? cursor->prev(cursor) : cursor->next(cursor), k, v);
}

int shim_leave(shim_reader *reader) { return reader->cursor->reset(reader->cursor); }

void shim_reader_free(shim_reader *reader) {
  reader->session->close(reader->session, NULL);
  free(reader);
}
