// See glue.h.
#include "glue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

glue_length glue_get_into(const esker_keyspace *ks, const uint8_t *key, size_t key_len, uint8_t *buffer,
                          size_t capacity) {
  glue_length r = {0};
  r.code = esker_get_into(ks, key, key_len, buffer, capacity, &r.len, &r.error);
  return r;
}

glue_result glue_contains(const esker_keyspace *ks, const uint8_t *key, size_t key_len) {
  glue_result r = {0};
  r.code = esker_contains(ks, key, key_len, &r.error);
  return r;
}

glue_result glue_put(const esker_keyspace *ks, const uint8_t *key, size_t key_len, const uint8_t *value,
                     size_t value_len, esker_durability durability) {
  glue_result r = {0};
  r.code = esker_put(ks, key, key_len, value, value_len, durability, &r.error);
  return r;
}

glue_result glue_delete(const esker_keyspace *ks, const uint8_t *key, size_t key_len, esker_durability durability) {
  glue_result r = {0};
  r.code = esker_delete(ks, key, key_len, durability, &r.error);
  return r;
}

glue_result glue_compact_range(const esker_keyspace *ks, const uint8_t *from, size_t from_len, const uint8_t *to,
                               size_t to_len) {
  glue_result r = {0};
  r.code = esker_compact_range(ks, from, from_len, to, to_len, &r.error);
  return r;
}

glue_size glue_approximate_size(const esker_keyspace *ks, const uint8_t *from, size_t from_len, const uint8_t *to,
                                size_t to_len) {
  glue_size r = {0};
  r.code = esker_approximate_size(ks, from, from_len, to, to_len, &r.size, &r.error);
  return r;
}

glue_values glue_multi_get(const esker_keyspace *ks, size_t count, const uint8_t *keys, const size_t *lens) {
  glue_values r = {0};
  const void **each = malloc((count + 1) * sizeof *each);
  r.values = calloc(count + 1, sizeof *r.values);
  if (!each || !r.values) {
    r.code = ESKER_INTERNAL;
  } else {
    for (size_t i = 0; i < count; i++) {
      each[i] = keys;
      keys += lens[i];
    }
    r.code = esker_multi_get(ks, count, each, lens, r.values, &r.error);
  }
  free(each);
  if (r.code != ESKER_OK) {
    free(r.values);
    r.values = NULL;
  }
  return r;
}

void glue_values_free(esker_value *values, size_t count) {
  for (size_t i = 0; i < count; i++) esker_value_release(&values[i]);
  free(values);
}

// Reads a number at a place that is not aligned, and goes past it.
static uint32_t number(const uint8_t **at) {
  uint32_t n;
  memcpy(&n, *at, sizeof n);
  *at += sizeof n;
  return n;
}

glue_result glue_write(const esker_db *db, const uint8_t *operations, size_t len,
                       const esker_keyspace *const *keyspaces, esker_durability durability) {
  glue_result r = {0};
  esker_batch *batch = esker_batch_new();
  const uint8_t *at = operations, *end = operations + len;
  while (r.code == ESKER_OK && at < end) {
    uint32_t what = number(&at), key_len = number(&at), value_len = number(&at);
    const esker_keyspace *ks = what / 2 ? keyspaces[what / 2 - 1] : NULL;
    if (what % 2)
      r.code = esker_batch_delete(batch, ks, at, key_len, &r.error);
    else
      r.code = esker_batch_put(batch, ks, at, key_len, at + key_len, value_len, &r.error);
    at += (size_t)key_len + value_len;
  }
  if (r.code == ESKER_OK) r.code = esker_write(db, batch, durability, &r.error);
  esker_batch_free(&batch);
  return r;
}

glue_entry glue_move(esker_cursor *cursor, int where, const uint8_t *key, size_t key_len) {
  glue_entry r = {0};
  switch (where) {
    case GLUE_FIRST: r.code = esker_cursor_first(cursor, &r.entry, &r.error); break;
    case GLUE_LAST: r.code = esker_cursor_last(cursor, &r.entry, &r.error); break;
    case GLUE_SEEK: r.code = esker_cursor_seek(cursor, key, key_len, &r.entry, &r.error); break;
    case GLUE_SEEK_FOR_PREV:
      r.code = esker_cursor_seek_for_prev(cursor, key, key_len, &r.entry, &r.error);
      break;
    case GLUE_NEXT: r.code = esker_cursor_next(cursor, &r.entry, &r.error); break;
    default: r.code = esker_cursor_prev(cursor, &r.entry, &r.error);
  }
  return r;
}

glue_cursor glue_scan(const esker_keyspace *ks, bool keys_only, int where, const uint8_t *key, size_t key_len) {
  glue_cursor r = {0};
  r.code = esker_cursor_open(ks, keys_only, &r.cursor, &r.error);
  if (r.code == ESKER_OK) {
    glue_entry at = glue_move(r.cursor, where, key, key_len);
    r.code = at.code;
    r.error = at.error;
  }
  if (r.code != ESKER_OK) esker_cursor_close(&r.cursor);
  return r;
}

glue_chunk glue_read(esker_cursor *cursor, bool backward, uint8_t *buffer, size_t capacity) {
  glue_chunk r = {0};
  r.code = esker_cursor_read(cursor, backward, buffer, capacity, &r.used, &r.count, &r.done, &r.error);
  if (r.code == ESKER_OK && r.count == 0 && !r.done) {
    esker_entry at;
    r.code = esker_cursor_entry(cursor, &at, &r.error);
    r.key = at.key;
    r.key_len = at.key_len;
  }
  return r;
}

struct glue_feeder {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint8_t *waiting; // the chunk that comes next, if there is one
  size_t waiting_len;
  bool started, ended, aborted, finished;
  // The load's own: the chunk it is in.
  uint8_t *chunk;
  const uint8_t *at, *end;
};

glue_feeder *glue_feeder_new(void) {
  glue_feeder *f = calloc(1, sizeof *f);
  if (!f) return NULL;
  pthread_mutex_init(&f->lock, NULL);
  pthread_cond_init(&f->changed, NULL);
  return f;
}

void glue_feeder_free(glue_feeder *f) {
  pthread_cond_destroy(&f->changed);
  pthread_mutex_destroy(&f->lock);
  free(f->waiting);
  free(f->chunk);
  free(f);
}

void glue_feeder_wait(glue_feeder *f) {
  pthread_mutex_lock(&f->lock);
  while (!f->started && !f->finished) pthread_cond_wait(&f->changed, &f->lock);
  pthread_mutex_unlock(&f->lock);
}

int glue_feeder_push(glue_feeder *f, const uint8_t *entries, size_t len) {
  uint8_t *chunk = malloc(len ? len : 1);
  if (!chunk) return GLUE_NO_MEMORY;
  memcpy(chunk, entries, len);
  pthread_mutex_lock(&f->lock);
  while (f->waiting && !f->finished) pthread_cond_wait(&f->changed, &f->lock);
  bool taken = !f->finished;
  if (taken) {
    f->waiting = chunk;
    f->waiting_len = len;
    pthread_cond_broadcast(&f->changed);
  }
  pthread_mutex_unlock(&f->lock);
  if (!taken) free(chunk);
  return taken ? GLUE_TAKEN : GLUE_ENDED;
}

void glue_feeder_end(glue_feeder *f, bool abort) {
  pthread_mutex_lock(&f->lock);
  f->ended = true;
  f->aborted = abort;
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->lock);
}

// Takes the next chunk: 1, or 0 at the end, or -1 when the load was called off.
static int next_chunk(glue_feeder *f) {
  free(f->chunk);
  f->chunk = NULL;
  f->at = f->end = NULL;
  pthread_mutex_lock(&f->lock);
  f->started = true;
  pthread_cond_broadcast(&f->changed);
  while (!f->waiting && !f->ended) pthread_cond_wait(&f->changed, &f->lock);
  int answer = f->aborted ? -1 : f->waiting ? 1 : 0;
  if (answer == 1) {
    f->chunk = f->waiting;
    f->at = f->chunk;
    f->end = f->chunk + f->waiting_len;
    f->waiting = NULL;
    pthread_cond_broadcast(&f->changed);
  }
  pthread_mutex_unlock(&f->lock);
  return answer;
}

static int next_entry(void *state, const void **key, size_t *key_len, const void **value, size_t *value_len) {
  glue_feeder *f = state;
  while (f->at == f->end) {
    int answer = next_chunk(f);
    if (answer != 1) return answer;
  }
  *key_len = number(&f->at);
  *value_len = number(&f->at);
  *key = f->at;
  *value = f->at + *key_len;
  f->at += *key_len + *value_len;
  return 1;
}

glue_length glue_bulk_load(const esker_keyspace *ks, glue_feeder *f) {
  glue_length r = {0};
  uint64_t loaded = 0;
  r.code = esker_bulk_load(ks, next_entry, f, &loaded, &r.error);
  r.len = loaded;
  pthread_mutex_lock(&f->lock);
  f->finished = true;
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->lock);
  return r;
}

static int stop(void *state, uint64_t done, uint64_t total) {
  (void)done;
  (void)total;
  return __atomic_load_n((int32_t *)state, __ATOMIC_RELAXED);
}

glue_result glue_db_verify(const esker_db *db, int32_t *flag, esker_string *report) {
  glue_result r = {0};
  r.code = esker_db_verify(db, stop, flag, report, &r.error);
  return r;
}

glue_result glue_verify(const char *path, const esker_options *options, int32_t *flag, esker_string *report) {
  glue_result r = {0};
  r.code = esker_verify(path, options, stop, flag, report, &r.error);
  return r;
}
