/* leveldb/c.h: every function of it. The program's one argument is a directory for its stores. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leveldb/c.h"

static int failures = 0;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      ++failures;                                                              \
    }                                                                          \
  } while (0)

/* Errors take the place of those before them: one variable for all calls. */
static char *error = NULL;

#define CHECK_NO_ERROR()                                                       \
  do {                                                                         \
    if (error != NULL) {                                                       \
      fprintf(stderr, "%s:%d: error: %s\n", __FILE__, __LINE__, error);        \
      ++failures;                                                              \
      leveldb_free(error);                                                     \
      error = NULL;                                                            \
    }                                                                          \
  } while (0)

#define CHECK_ERROR(text)                                                      \
  do {                                                                         \
    CHECK(error != NULL && strstr(error, text) != NULL);                       \
    leveldb_free(error);                                                       \
    error = NULL;                                                              \
  } while (0)

static char *path_of(const char *dir, const char *name) {
  char *path = malloc(strlen(dir) + strlen(name) + 2);
  sprintf(path, "%s/%s", dir, name);
  return path;
}

static void check_get(leveldb_t *db, const leveldb_readoptions_t *options, const char *key, const char *expected) {
  size_t len = 77;
  char *value = leveldb_get(db, options, key, strlen(key), &len, &error);
  CHECK_NO_ERROR();
  if (expected == NULL) {
    CHECK(value == NULL && len == 0);
  } else {
    CHECK(value != NULL && len == strlen(expected) && memcmp(value, expected, len) == 0);
  }
  leveldb_free(value);
}

static void check_at(leveldb_iterator_t *iterator, const char *key, const char *value) {
  size_t key_len = 0, value_len = 0;
  CHECK(leveldb_iter_valid(iterator) == (key != NULL));
  if (key == NULL || !leveldb_iter_valid(iterator)) return;
  const char *k = leveldb_iter_key(iterator, &key_len);
  const char *v = leveldb_iter_value(iterator, &value_len);
  CHECK(key_len == strlen(key) && memcmp(k, key, key_len) == 0);
  CHECK(value_len == strlen(value) && memcmp(v, value, value_len) == 0);
}

/* What a batch holds, as text. */
static void note_put(void *state, const char *k, size_t klen, const char *v, size_t vlen) {
  sprintf((char *)state + strlen(state), "+%.*s=%.*s", (int)klen, k, (int)vlen, v);
}
static void note_delete(void *state, const char *k, size_t klen) {
  sprintf((char *)state + strlen(state), "-%.*s", (int)klen, k);
}

static int destroyed = 0;
static void destroy(void *state) {
  CHECK(state == &destroyed);
  ++destroyed;
}

static int compare_backwards(void *state, const char *a, size_t alen, const char *b, size_t blen) {
  const size_t least = alen < blen ? alen : blen;
  const int order = memcmp(b, a, least);
  CHECK(state == &destroyed);
  return order != 0 ? order : alen < blen ? 1 : alen > blen ? -1 : 0;
}
static const char *backwards(void *state) {
  (void)state;
  return "test.backwards";
}

static char *no_filter(void *state, const char *const *keys, const size_t *lens, int count, size_t *len) {
  char *filter = malloc(1);
  (void)state, (void)keys, (void)lens, (void)count;
  *filter = 'f';
  *len = 1;
  return filter;
}
static uint8_t always(void *state, const char *key, size_t len, const char *filter, size_t filter_len) {
  (void)state, (void)key, (void)len;
  CHECK(filter_len == 1 && *filter == 'f');
  return 1;
}
static const char *filter_name(void *state) {
  (void)state;
  return "test.filter";
}

static void test_store(const char *path) {
  leveldb_options_t *options = leveldb_options_create();
  leveldb_readoptions_t *reading = leveldb_readoptions_create();
  leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
  leveldb_env_t *env = leveldb_create_default_env();
  leveldb_cache_t *cache = leveldb_cache_create_lru(100000);

  leveldb_options_set_env(options, env);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_write_buffer_size(options, 100000);
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_options_set_max_open_files(options, 10);
  leveldb_options_set_block_size(options, 1024);
  leveldb_options_set_block_restart_interval(options, 8);
  leveldb_options_set_max_file_size(options, 3 << 20);
  leveldb_options_set_compression(options, leveldb_no_compression);
  leveldb_readoptions_set_verify_checksums(reading, 1);
  leveldb_readoptions_set_fill_cache(reading, 0);
  leveldb_writeoptions_set_sync(writing, 1);

  leveldb_destroy_db(options, path, &error);
  CHECK_NO_ERROR();
  CHECK(leveldb_open(options, path, &error) == NULL);
  CHECK_ERROR("nvalid argument");
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t *db = leveldb_open(options, path, &error);
  CHECK_NO_ERROR();
  if (db == NULL) exit(1);

  check_get(db, reading, "foo", NULL);
  leveldb_put(db, writing, "foo", 3, "hello", 5, &error);
  CHECK_NO_ERROR();
  check_get(db, reading, "foo", "hello");
  leveldb_put(db, writing, "empty", 5, NULL, 0, &error);
  CHECK_NO_ERROR();
  check_get(db, reading, "empty", "");
  leveldb_delete(db, writing, "empty", 5, &error);
  CHECK_NO_ERROR();
  check_get(db, reading, "empty", NULL);

  /* Batches. */
  char noted[200] = "";
  leveldb_writebatch_t *batch = leveldb_writebatch_create();
  leveldb_writebatch_t *more = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "foo", 3, "a", 1);
  leveldb_writebatch_clear(batch);
  leveldb_writebatch_put(batch, "bar", 3, "b", 1);
  leveldb_writebatch_put(batch, "box", 3, "c", 1);
  leveldb_writebatch_put(more, "baz", 3, "d", 1);
  leveldb_writebatch_delete(more, "bar", 3);
  leveldb_writebatch_append(batch, more);
  leveldb_write(db, writing, batch, &error);
  CHECK_NO_ERROR();
  leveldb_writebatch_iterate(batch, noted, note_put, note_delete);
  CHECK(strcmp(noted, "+bar=b+box=c+baz=d-bar") == 0);
  leveldb_writebatch_destroy(more);
  leveldb_writebatch_destroy(batch);
  check_get(db, reading, "foo", "hello");
  check_get(db, reading, "bar", NULL);
  check_get(db, reading, "box", "c");

  /* Iterators. */
  leveldb_iterator_t *iterator = leveldb_create_iterator(db, reading);
  check_at(iterator, NULL, NULL);
  leveldb_iter_seek_to_first(iterator);
  check_at(iterator, "baz", "d");
  leveldb_iter_next(iterator);
  check_at(iterator, "box", "c");
  leveldb_iter_prev(iterator);
  check_at(iterator, "baz", "d");
  leveldb_iter_prev(iterator);
  check_at(iterator, NULL, NULL);
  leveldb_iter_seek_to_last(iterator);
  check_at(iterator, "foo", "hello");
  leveldb_iter_seek(iterator, "c", 1);
  check_at(iterator, "foo", "hello");
  leveldb_iter_get_error(iterator, &error);
  CHECK_NO_ERROR();
  leveldb_iter_destroy(iterator);

  /* Snapshots. */
  const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
  leveldb_delete(db, writing, "foo", 3, &error);
  CHECK_NO_ERROR();
  leveldb_readoptions_set_snapshot(reading, snapshot);
  check_get(db, reading, "foo", "hello");
  leveldb_readoptions_set_snapshot(reading, NULL);
  check_get(db, reading, "foo", NULL);
  leveldb_release_snapshot(db, snapshot);

  /* Sizes, compactions, properties. */
  char *value = calloc(1, 1000);
  for (int i = 0; i < 2000; ++i) {
    char key[16];
    sprintf(key, "k%06d", i);
    leveldb_writeoptions_set_sync(writing, 0);
    leveldb_put(db, writing, key, strlen(key), value, 1000, &error);
    CHECK_NO_ERROR();
  }
  free(value);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  leveldb_compact_range(db, "k000100", 7, "k000200", 7);
  const char *starts[2] = {"a", "k000000"}, *limits[2] = {"k000000", "k002000"};
  const size_t start_lens[2] = {1, 7}, limit_lens[2] = {7, 7};
  uint64_t sizes[2];
  leveldb_approximate_sizes(db, 2, starts, start_lens, limits, limit_lens, sizes);
  CHECK(sizes[0] < 100000);
  CHECK(sizes[1] > 1000000 && sizes[1] < 3000000);
  CHECK(leveldb_property_value(db, "nonsense") == NULL);
  char *stats = leveldb_property_value(db, "leveldb.stats");
  CHECK(stats != NULL && strlen(stats) > 50);
  leveldb_free(stats);

  /* Open once, and again. */
  CHECK(leveldb_open(options, path, &error) == NULL);
  CHECK_ERROR("IO error");
  leveldb_close(db);
  leveldb_options_set_error_if_exists(options, 1);
  CHECK(leveldb_open(options, path, &error) == NULL);
  CHECK_ERROR("nvalid argument");
  leveldb_options_set_error_if_exists(options, 0);
  leveldb_repair_db(options, path, &error);
  CHECK_NO_ERROR();
  leveldb_options_set_create_if_missing(options, 0);
  db = leveldb_open(options, path, &error);
  CHECK_NO_ERROR();
  if (db == NULL) exit(1);
  check_get(db, reading, "box", "c");
  check_get(db, reading, "foo", NULL);
  leveldb_close(db);
  leveldb_destroy_db(options, path, &error);
  CHECK_NO_ERROR();
  CHECK(leveldb_open(options, path, &error) == NULL);
  /* An error takes the place of the one before. */
  char *before = error;
  CHECK(before != NULL);
  CHECK(leveldb_open(options, path, &error) == NULL);
  CHECK_ERROR("nvalid argument");

  leveldb_cache_destroy(cache);
  leveldb_env_destroy(env);
  leveldb_writeoptions_destroy(writing);
  leveldb_readoptions_destroy(reading);
  leveldb_options_destroy(options);
}

/* Functions of the program's: a comparator and filters. */
static void test_functions(const char *path) {
  leveldb_comparator_t *comparator =
      leveldb_comparator_create(&destroyed, destroy, compare_backwards, backwards);
  leveldb_readoptions_t *reading = leveldb_readoptions_create();
  leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
  for (int round = 0; round < 2; ++round) {
    leveldb_filterpolicy_t *filter =
        round == 0 ? leveldb_filterpolicy_create(&destroyed, destroy, no_filter, always, filter_name)
                   : leveldb_filterpolicy_create_bloom(10);
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_options_set_comparator(options, comparator);
    leveldb_options_set_filter_policy(options, filter);
    leveldb_options_set_compression(options, leveldb_snappy_compression);
    leveldb_t *db = leveldb_open(options, path, &error);
    CHECK_NO_ERROR();
    if (db == NULL) exit(1);
    leveldb_put(db, writing, "a", 1, "1", 1, &error);
    leveldb_put(db, writing, "b", 1, "2", 1, &error);
    CHECK_NO_ERROR();
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    check_get(db, reading, "a", "1");
    check_get(db, reading, "c", NULL);
    leveldb_iterator_t *iterator = leveldb_create_iterator(db, reading);
    leveldb_iter_seek_to_first(iterator);
    check_at(iterator, "b", "2");
    leveldb_iter_seek(iterator, "aa", 2);
    check_at(iterator, "a", "1");
    leveldb_iter_destroy(iterator);
    leveldb_close(db);
    leveldb_options_destroy(options);
    leveldb_filterpolicy_destroy(filter);
    CHECK(destroyed == 1);
  }
  leveldb_options_t *options = leveldb_options_create();
  CHECK(leveldb_open(options, path, &error) == NULL);
  CHECK_ERROR("nvalid argument");
  leveldb_options_set_comparator(options, comparator);
  leveldb_destroy_db(options, path, &error);
  CHECK_NO_ERROR();
  leveldb_options_destroy(options);
  leveldb_comparator_destroy(comparator);
  CHECK(destroyed == 2);
  leveldb_writeoptions_destroy(writing);
  leveldb_readoptions_destroy(reading);
}

static void test_rest(void) {
  leveldb_env_t *env = leveldb_create_default_env();
  char *dir = leveldb_env_get_test_directory(env);
  CHECK(dir != NULL && strlen(dir) > 0);
  leveldb_free(dir);
  leveldb_env_destroy(env);
  leveldb_free(NULL);
  CHECK(leveldb_major_version() == 1);
  CHECK(leveldb_minor_version() == 23);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  char *store = path_of(argv[1], "store"), *functions = path_of(argv[1], "functions");
  test_store(store);
  test_functions(functions);
  test_rest();
  free(store);
  free(functions);
  printf("c.h: %d failed\n", failures);
  return failures != 0;
}
