/* Berkeley DB: a B-tree in a transactional environment private to this process. Single reads take
 * no transaction; walks forwards fetch many entries at once (DB_MULTIPLE_KEY); a batch is one bulk
 * put in one transaction. Whoever loses a deadlock tries again. */
#include "shim.h"
#include <db.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#define MIB (1024u * 1024u)
#define BULK MIB
/* Kilobytes of log after which a checkpoint is taken, and how many writes come before looking. */
#define CHECKPOINT_KIB (256u * 1024u)
#define LOOK_EVERY 4096

struct shim_store { DB_ENV *env; DB *db; atomic_uint writes; };
struct shim_writer { shim_store *store; shim_batch batch; char *bulk; size_t room; };
struct shim_reader {
  shim_store *store;
  DBC *cursor;
  DBT key, value; /* memory of our own, made larger when it is too small */
  DBT bulk, first; /* many entries, and where the first key is put once more */
  void *at;        /* in `bulk`, null when it is used up */
  shim_bytes last; /* the last key taken from there */
  int backwards, many;
};

const char *shim_version(void) {
  static char text[64];
  int major, minor, patch;
  db_version(&major, &minor, &patch);
  if (major != DB_VERSION_MAJOR || minor != DB_VERSION_MINOR) return NULL;
  snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
  return text;
}

const char *shim_error(int code) { return db_strerror(code); }

/* A quarter of the memory, from its default on: what is in the log file of the moment stays on the
 * disk after a checkpoint too, and each new one begins with a wait for the device. As in bdb.rs. */
static u_int32_t log_file(const shim_options *options) {
  uint64_t quarter = options->memory / 4;
  return (u_int32_t)(quarter < 10 * MIB ? 10 * MIB : quarter > 64 * MIB ? 64 * MIB : quarter);
}

static int configure(DB_ENV *env, const shim_options *options) {
  int code = env->set_cachesize(env, (u_int32_t)(options->memory >> 30),
                                (u_int32_t)(options->memory & ((1u << 30) - 1)), 1);
  /* A batch locks every page that it touches. */
  if (!code) code = env->set_lk_max_locks(env, 50000);
  if (!code) code = env->set_lk_max_objects(env, 50000);
  if (!code) code = env->set_lk_max_lockers(env, 2000);
  /* Whoever has written least gives way: a reader, which only reads again. */
  if (!code) code = env->set_lk_detect(env, DB_LOCK_MINWRITE);
  if (!code) code = env->set_lg_max(env, log_file(options));
  if (!code) code = env->set_lg_bsize(env, 4 * MIB);
  if (!code) code = env->log_set_config(env, DB_LOG_AUTO_REMOVE, 1);
  if (!code && !options->synced) code = env->set_flags(env, DB_TXN_WRITE_NOSYNC, 1);
  return code;
}

int shim_open(const shim_options *options, shim_store **out) {
  /* Locks and handles for threads where there are several: one alone waits for nobody. */
  const u_int32_t thread = options->shared ? DB_THREAD : 0;
  const u_int32_t lock = options->shared ? DB_INIT_LOCK : 0;
  const u_int32_t with = DB_CREATE | DB_INIT_MPOOL | DB_INIT_LOG | DB_INIT_TXN | DB_RECOVER |
                         DB_PRIVATE | lock | thread;
  shim_store *store = calloc(1, sizeof *store);
  if (!store) return ENOMEM;
  int code = db_env_create(&store->env, 0);
  if (code) {
    free(store);
    return code;
  }
  code = configure(store->env, options);
  if (!code) code = store->env->open(store->env, options->dir, with, 0644);
  if (!code) code = db_create(&store->db, store->env, 0);
  if (!code && options->page_size)
    code = store->db->set_pagesize(store->db, options->page_size);
  if (!code)
    code = store->db->open(store->db, NULL, "store.db", NULL, DB_BTREE,
                           DB_CREATE | DB_AUTO_COMMIT | thread, 0644);
  if (code) {
    shim_close(store);
    return code;
  }
  *out = store;
  return 0;
}

int shim_settle(shim_store *store) {
  return store->env->txn_checkpoint(store->env, 0, 0, DB_FORCE);
}

int shim_compact(shim_store *store) {
  (void)store;
  return NONE;
}

int shim_reopen(shim_store *store, const shim_options *options) {
  (void)store;
  (void)options;
  return NONE;
}

int shim_close(shim_store *store) {
  int code = 0, next;
  if (store->db) code = store->db->close(store->db, 0);
  /* So that the next opening finds nothing to recover. */
  if (store->db) store->env->txn_checkpoint(store->env, 0, 0, DB_FORCE);
  next = store->env->close(store->env, 0);
  free(store);
  return code ? code : next;
}

/* After `writes` more writes: bounds the log, and the time that a recovery takes. */
static int wrote(shim_store *store, unsigned writes) {
  unsigned before = atomic_fetch_add_explicit(&store->writes, writes, memory_order_relaxed);
  if (before / LOOK_EVERY == (before + writes) / LOOK_EVERY) return 0;
  return store->env->txn_checkpoint(store->env, CHECKPOINT_KIB, 0, 0);
}

int shim_writer_new(shim_store *store, int ascending, shim_writer **out) {
  (void)ascending; /* it notices by itself */
  shim_writer *writer = calloc(1, sizeof *writer);
  if (!writer) return ENOMEM;
  writer->store = store;
  *out = writer;
  return 0;
}

int shim_put(shim_writer *writer, const void *key, size_t key_size, const void *value,
             size_t size) {
  DB *db = writer->store->db;
  DBT k = {.data = (void *)key, .size = (u_int32_t)key_size};
  DBT v = {.data = (void *)value, .size = (u_int32_t)size};
  int code;
  while ((code = db->put(db, NULL, &k, &v, 0)) == DB_LOCK_DEADLOCK) {}
  return code ? code : wrote(writer->store, 1);
}

int shim_delete(shim_writer *writer, const void *key, size_t key_size) {
  DB *db = writer->store->db;
  DBT k = {.data = (void *)key, .size = (u_int32_t)key_size};
  int code;
  while ((code = db->del(db, NULL, &k, 0)) == DB_LOCK_DEADLOCK) {}
  if (code == DB_NOTFOUND) return 0;
  return code ? code : wrote(writer->store, 1);
}

int shim_batch_put(shim_writer *writer, const void *key, size_t key_size, const void *value,
                   size_t size) {
  return batch_add(&writer->batch, key, key_size, value, size);
}

/* The batch as one buffer: entries from its begin, their places and sizes from its end. */
static int batch_pack(shim_writer *writer, DBT *packed) {
  shim_bytes key, value;
  size_t at = 0;
  size_t need = writer->batch.used + (4 * writer->batch.entries + 8) * sizeof(u_int32_t);
  void *place;
  need = (need + 1023) / 1024 * 1024;
  if (need > UINT32_MAX) return EFBIG;
  if (writer->room < need) {
    char *data = realloc(writer->bulk, need);
    if (!data) return ENOMEM;
    writer->bulk = data;
    writer->room = need;
  }
  memset(packed, 0, sizeof *packed);
  packed->data = writer->bulk;
  packed->ulen = (u_int32_t)need;
  packed->flags = DB_DBT_USERMEM;
  DB_MULTIPLE_WRITE_INIT(place, packed);
  while (batch_next(&writer->batch, &at, &key, &value)) {
    DB_MULTIPLE_KEY_WRITE_NEXT(place, packed, key.data, key.size, value.data, value.size);
    if (!place) return EFBIG;
  }
  return 0;
}

int shim_batch_commit(shim_writer *writer) {
  shim_store *store = writer->store;
  unsigned entries = (unsigned)writer->batch.entries;
  DBT packed, unused = {0};
  int code;
  if (!entries) return 0;
  code = batch_pack(writer, &packed);
  batch_clear(&writer->batch);
  if (code) return code;
  do {
    DB_TXN *txn;
    code = store->env->txn_begin(store->env, NULL, &txn, 0);
    if (code) return code;
    code = store->db->put(store->db, txn, &packed, &unused, DB_MULTIPLE_KEY);
    if (code)
      txn->abort(txn);
    else
      code = txn->commit(txn, 0);
  } while (code == DB_LOCK_DEADLOCK);
  return code ? code : wrote(store, entries);
}

void shim_writer_free(shim_writer *writer) {
  free(writer->batch.data);
  free(writer->bulk);
  free(writer);
}

static int grow(DBT *dbt, size_t need) {
  void *data;
  if (dbt->ulen >= need) return 0;
  need = (need + 1023) / 1024 * 1024;
  if (need > UINT32_MAX) return EFBIG;
  data = realloc(dbt->data, need);
  if (!data) return ENOMEM;
  dbt->data = data;
  dbt->ulen = (u_int32_t)need;
  dbt->flags = DB_DBT_USERMEM;
  return 0;
}

int shim_reader_new(shim_store *store, shim_reader **out) {
  shim_reader *reader = calloc(1, sizeof *reader);
  if (!reader) return ENOMEM;
  reader->store = store;
  if (grow(&reader->key, 1024) || grow(&reader->value, 4096)) {
    shim_reader_free(reader);
    return ENOMEM;
  }
  *out = reader;
  return 0;
}

static int found(int code) { return code == DB_NOTFOUND ? NONE : code; }

int shim_get(shim_reader *reader, const void *key, size_t key_size, shim_bytes *value) {
  DB *db = reader->store->db;
  DBT k = {.data = (void *)key, .size = (u_int32_t)key_size, .ulen = (u_int32_t)key_size};
  int code;
  k.flags = DB_DBT_USERMEM;
  for (;;) {
    code = db->get(db, NULL, &k, &reader->value, 0);
    if (code == DB_BUFFER_SMALL) {
      code = grow(&reader->value, reader->value.size);
      if (code) return code;
    } else if (code != DB_LOCK_DEADLOCK) {
      break;
    }
  }
  value->data = reader->value.data;
  value->size = reader->value.size;
  return found(code);
}

int shim_leave(shim_reader *reader) {
  DBC *cursor = reader->cursor;
  reader->cursor = NULL;
  reader->at = NULL;
  return cursor ? cursor->close(cursor) : 0;
}

static int enter(shim_reader *reader) {
  int code = shim_leave(reader);
  return code ? code : reader->store->db->cursor(reader->store->db, NULL, &reader->cursor, 0);
}

static int move_once(shim_reader *reader, u_int32_t how) {
  int code;
  for (;;) {
    /* An entry too large leaves the cursor where it was. */
    u_int32_t key_size = reader->key.size;
    code = reader->cursor->get(reader->cursor, &reader->key, &reader->value, how);
    if (code != DB_BUFFER_SMALL) return code;
    code = grow(&reader->value, reader->value.size);
    if (!code && reader->key.size > reader->key.ulen) code = grow(&reader->key, reader->key.size);
    if (code) return code;
    if (how == DB_SET_RANGE) reader->key.size = key_size;
  }
}

/* As many entries as the buffer takes, behind where the cursor stands. */
static int fetch(shim_reader *reader, u_int32_t how) {
  DBT *bulk = &reader->bulk, *first = &reader->first;
  int code;
  while ((code = reader->cursor->get(reader->cursor, first, bulk, how | DB_MULTIPLE_KEY)) ==
         DB_BUFFER_SMALL) {
    if (first->size > first->ulen)
      code = grow(first, first->size);
    else
      code = grow(bulk, bulk->size > bulk->ulen ? bulk->size : (size_t)bulk->ulen * 2);
    if (code) return code;
  }
  if (!code) DB_MULTIPLE_INIT(reader->at, bulk);
  return code;
}

/* Gives way to a writer: lets go of the page, and finds the place again by its key. When that key
 * is gone, the cursor may stand on the entry that is due: `due` says so. */
static int again(shim_reader *reader, int *due) {
  u_int32_t size = reader->key.size;
  char *old = malloc(size ? size : 1);
  int code;
  if (!old) return ENOMEM;
  memcpy(old, reader->key.data, size);
  do {
    code = enter(reader);
    if (code) break;
    reader->key.size = size;
    memcpy(reader->key.data, old, size);
    code = move_once(reader, DB_SET_RANGE);
    *due = !code && !reader->backwards &&
           (reader->key.size != size || memcmp(reader->key.data, old, size));
    if (code == DB_NOTFOUND && reader->backwards) {
      code = move_once(reader, DB_LAST);
      *due = 1;
    }
  } while (code == DB_LOCK_DEADLOCK);
  free(old);
  return code;
}

static void hand_out(shim_reader *reader, shim_bytes *k, shim_bytes *v) {
  k->data = reader->key.data;
  k->size = reader->key.size;
  v->data = reader->value.data;
  v->size = reader->value.size;
}

int shim_seek(shim_reader *reader, const void *key, size_t size, shim_bytes *k, shim_bytes *v) {
  int code;
  reader->backwards = reader->many = 0;
  do {
    code = enter(reader);
    if (!code) code = grow(&reader->key, size);
    if (code) return code;
    memcpy(reader->key.data, key, size);
    reader->key.size = (u_int32_t)size;
    code = move_once(reader, DB_SET_RANGE);
  } while (code == DB_LOCK_DEADLOCK);
  hand_out(reader, k, v);
  return found(code);
}

int shim_start(shim_reader *reader, int backwards, shim_bytes *k, shim_bytes *v) {
  int code;
  reader->backwards = backwards;
  reader->many = !backwards;
  do {
    code = enter(reader);
    if (code) return code;
    if (backwards) {
      code = move_once(reader, DB_LAST);
    } else {
      code = grow(&reader->bulk, BULK) || grow(&reader->first, 1024) ? ENOMEM : 0;
      if (!code) code = fetch(reader, DB_FIRST);
    }
  } while (code == DB_LOCK_DEADLOCK);
  if (code) return found(code);
  if (!backwards) return shim_step(reader, k, v);
  hand_out(reader, k, v);
  return 0;
}

/* The next entry of the buffer; 0 when it is used up. */
static int from_bulk(shim_reader *reader, shim_bytes *k, shim_bytes *v) {
  void *key, *value;
  u_int32_t key_size, size;
  if (!reader->at) return 0;
  DB_MULTIPLE_KEY_NEXT(reader->at, &reader->bulk, key, key_size, value, size);
  if (!reader->at) return 0;
  k->data = key;
  k->size = key_size;
  v->data = value;
  v->size = size;
  reader->last = *k;
  return 1;
}

/* Copies the last key of the buffer, which is about to be written over. */
static int keep_place(shim_reader *reader) {
  int code = grow(&reader->key, reader->last.size);
  if (code) return code;
  memcpy(reader->key.data, reader->last.data, reader->last.size);
  reader->key.size = (u_int32_t)reader->last.size;
  return 0;
}

int shim_step(shim_reader *reader, shim_bytes *k, shim_bytes *v) {
  const u_int32_t how = reader->backwards ? DB_PREV : DB_NEXT;
  int code, due;
  if (reader->many) {
    if (from_bulk(reader, k, v)) return 0;
    code = keep_place(reader);
    if (code) return code;
  }
  for (;;) {
    code = reader->many ? fetch(reader, how) : move_once(reader, how);
    if (code != DB_LOCK_DEADLOCK) break;
    code = again(reader, &due);
    if (code) return found(code);
    if (due) {
      hand_out(reader, k, v);
      return 0;
    }
  }
  if (code) return found(code);
  if (reader->many) return from_bulk(reader, k, v) ? 0 : NONE;
  hand_out(reader, k, v);
  return 0;
}

void shim_reader_free(shim_reader *reader) {
  shim_leave(reader);
  free(reader->key.data);
  free(reader->value.data);
  free(reader->bulk.data);
  free(reader->first.data);
  free(reader);
}
