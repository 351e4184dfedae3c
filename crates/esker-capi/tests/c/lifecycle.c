/* Opening and closing, options, errors, and what is passed wrongly. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void texts(void) {
  CHECK(esker_version()[0] >= '0' && strchr(esker_version(), '.') != NULL);
  CHECK(strcmp(esker_code_name(ESKER_CORRUPTION), "corruption") == 0);
  CHECK(strcmp(esker_code_name(ESKER_INTERNAL), "internal") == 0);
  CHECK(strcmp(esker_code_name((esker_code)17), "unknown") == 0);
  CHECK(strcmp(esker_code_name((esker_code)-1), "unknown") == 0);
  for (int code = ESKER_OK; code <= ESKER_INTERNAL; code++)
    CHECK(strcmp(esker_code_name((esker_code)code), "unknown") != 0);
  CHECK(esker_error_code(NULL) == ESKER_OK);
  CHECK(strcmp(esker_error_message(NULL), "") == 0);
  CHECK(esker_error_os_code(NULL) == 0);
  esker_error_free(NULL);
  esker_string_free(NULL);
  esker_strings_free(NULL, 3);
}

static void options(void) {
  esker_options *o = esker_options_new();
  CHECK(esker_options_set_memory(o, 8 << 20) == ESKER_OK);
  CHECK(esker_options_set_memory(o, 1000) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_options_set_durability(o, ESKER_DURABILITY_SYNCED) == ESKER_OK);
  CHECK(esker_options_set_durability(o, ESKER_DURABILITY_DEFAULT) == ESKER_OK);
  CHECK(esker_options_set_durability(o, 3) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_options_set_create_if_missing(o, true) == ESKER_OK);
  CHECK(esker_options_set_error_if_exists(o, false) == ESKER_OK);
  CHECK(esker_options_set_paranoid_checks(o, true) == ESKER_OK);
  CHECK(esker_options_set_read_only(o, false) == ESKER_OK);
  CHECK(esker_options_set_flush_on_close(o, true) == ESKER_OK);
  CHECK(esker_options_set_compression(o, ESKER_COMPRESSION_NONE) == ESKER_OK);
  CHECK(esker_options_set_compression(o, ESKER_COMPRESSION_ZSTD) == ESKER_OK);
  CHECK(esker_options_set_compression(o, -1) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_options_set_block_size(o, 8192) == ESKER_OK);
  CHECK(esker_options_set_block_size(o, 5000) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_options_set_segment_size(o, 1 << 20) == ESKER_OK);
  CHECK(esker_options_set_segment_size(o, 1) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_options_set_blob_threshold(o, 64) == ESKER_OK);
  CHECK(esker_options_set_blob_threshold(o, 63) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_options_set_order(o, ESKER_ORDER_REVERSE) == ESKER_OK);
  CHECK(esker_options_set_order(o, 2) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_options_set_memory(NULL, 8 << 20) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_options_set_comparator(o, NULL) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_options_set_keyspace_comparator(o, NULL, NULL) == ESKER_INVALID_ARGUMENT);
  esker_options_free(&o);
  CHECK(o == NULL);
  esker_options_free(&o);
  esker_options_free(NULL);

  esker_keyspace_options *k = esker_keyspace_options_new();
  CHECK(esker_keyspace_options_set_compression(k, ESKER_COMPRESSION_LZ4) == ESKER_OK);
  CHECK(esker_keyspace_options_set_compression(k, 9) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_keyspace_options_set_blob_threshold(k, 100) == ESKER_OK);
  CHECK(esker_keyspace_options_set_blob_threshold(k, 1) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_keyspace_options_set_order(k, ESKER_ORDER_REVERSE) == ESKER_OK);
  CHECK(esker_keyspace_options_set_order(k, 7) == ESKER_INVALID_ARGUMENT);
  CHECK(esker_keyspace_options_set_comparator(k, NULL) == ESKER_INVALID_ARGUMENT);
  esker_keyspace_options_free(&k);
  esker_keyspace_options_free(&k);
}

static void file(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void opening(const char *dir) {
  char path[1024];
  esker_options *o = small_options();
  esker_db *db = (esker_db *)(uintptr_t)8; /* overwritten, not read */
  CHECK(esker_options_set_create_if_missing(o, false) == ESKER_OK);
  GIVES(ESKER_NOT_A_STORE, esker_db_open(path_in(path, dir, "none"), o, &db, &error));
  CHECK(db == NULL);
  CHECK(esker_options_set_create_if_missing(o, true) == ESKER_OK);
  OK(esker_db_open(path_in(path, dir, "store"), o, &db, &error));
  esker_db *second = NULL;
  GIVES(ESKER_LOCKED, esker_db_open(path, o, &second, &error));
  CHECK(second == NULL);
  /* Without room for an error object there is the code. */
  CHECK(esker_db_open(path, o, &second, NULL) == ESKER_LOCKED);
  esker_keyspace *ks = default_of(db);
  put(ks, "ash", "Fraxinus");
  OK(esker_db_close(&db, &error));
  CHECK(db == NULL);
  OK(esker_db_close(&db, &error));
  OK(esker_db_close(NULL, &error));

  CHECK(esker_options_set_error_if_exists(o, true) == ESKER_OK);
  GIVES(ESKER_STORE_EXISTS, esker_db_open(path, o, &db, &error));
  CHECK(esker_options_set_error_if_exists(o, false) == ESKER_OK);
  CHECK(esker_options_set_order(o, ESKER_ORDER_REVERSE) == ESKER_OK);
  GIVES(ESKER_COMPARATOR, esker_db_open(path, o, &db, &error));
  CHECK(esker_options_set_order(o, ESKER_ORDER_BYTEWISE) == ESKER_OK);
  CHECK(esker_options_set_read_only(o, true) == ESKER_OK);
  OK(esker_db_open(path, o, &db, &error));
  esker_keyspace_close(&ks);
  ks = default_of(db);
  has(ks, "ash", "Fraxinus");
  GIVES(ESKER_READ_ONLY, esker_put(ks, "a", 1, "b", 1, ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_db_close(&db, &error));
  esker_keyspace_close(&ks);

  /* A directory of another engine is left alone, and the message names the way out. */
  CHECK(mkdir(path_in(path, dir, "theirs"), 0777) == 0);
  file(path_in(path, dir, "theirs/CURRENT"), "MANIFEST-000002\n");
  file(path_in(path, dir, "theirs/MANIFEST-000002"), "theirs");
  path_in(path, dir, "theirs");
  esker_error *error = NULL;
  CHECK(esker_db_open(path, NULL, &db, &error) == ESKER_FOREIGN_STORE);
  CHECK(strstr(esker_error_message(error), "esker import leveldb") != NULL);
  CHECK(esker_error_os_code(error) == 0);
  esker_error_free(&error);
  file(path_in(path, dir, "a file"), "no directory");
  CHECK(esker_db_open(path, NULL, &db, &error) == ESKER_IO);
  CHECK(esker_error_os_code(error) == ENOTDIR);
  esker_error_free(&error);
  esker_options_free(&o);
}

/* Handles of a store that was closed, in any order. */
static void after_close(const char *dir) {
  char path[1024];
  esker_db *db = open_small(path_in(path, dir, "closed"));
  esker_keyspace *ks = default_of(db), *view = NULL, *other = NULL;
  esker_snapshot *snapshot = NULL;
  esker_cursor *cursor = NULL, *late = NULL;
  esker_value value, more;
  esker_entry entry;
  uint64_t bytes;
  esker_keyspace_stat stat;
  put(ks, "ash", "a value that is too long to be kept in the struct itself, so it stays in a file");
  put(ks, "elm", "");
  OK(esker_snapshot_open(db, &snapshot, &error));
  OK(esker_keyspace_at(ks, snapshot, &view, &error));
  OK(esker_cursor_open(ks, false, &cursor, &error));
  OK(esker_get(ks, "ash", 3, &value, &error));
  OK(esker_db_close(&db, &error));

  CHECK(value.len == 79 && memcmp(value.data, "a value", 7) == 0);
  OK(esker_cursor_first(cursor, &entry, &error));
  CHECK(is(entry.key, entry.key_len, "ash"));
  OK(esker_cursor_next(cursor, &entry, &error));
  CHECK(is(entry.key, entry.key_len, "elm") && is(entry.value, entry.value_len, ""));
  GIVES(ESKER_CLOSED, esker_get(ks, "ash", 3, &more, &error));
  CHECK(more.data == NULL && more.len == 0);
  GIVES(ESKER_CLOSED, esker_get(view, "ash", 3, &more, &error));
  GIVES(ESKER_CLOSED, esker_put(ks, "a", 1, "b", 1, ESKER_DURABILITY_SYNCED, &error));
  GIVES(ESKER_CLOSED, esker_delete(ks, "a", 1, ESKER_DURABILITY_DEFAULT, &error));
  GIVES(ESKER_CLOSED, esker_cursor_open(ks, false, &late, &error));
  GIVES(ESKER_CLOSED, esker_keyspace_at(ks, snapshot, &other, &error));
  GIVES(ESKER_CLOSED, esker_approximate_size(ks, NULL, 0, NULL, 0, &bytes, &error));
  GIVES(ESKER_CLOSED, esker_compact_range(ks, NULL, 0, NULL, 0, &error));
  GIVES(ESKER_CLOSED, esker_keyspace_stats(ks, &stat, sizeof stat, &error));
  CHECK(late == NULL && other == NULL);

  esker_keyspace_close(&ks);
  esker_snapshot_close(&snapshot);
  esker_keyspace_close(&view);
  esker_cursor_close(&cursor);
  CHECK(value.data[0] == 'a');
  esker_value_release(&value);
  CHECK(ks == NULL && snapshot == NULL && view == NULL && cursor == NULL && value.data == NULL);
  esker_keyspace_close(&ks);
  esker_snapshot_close(&snapshot);
  esker_cursor_close(&cursor);
  esker_value_release(&value);

  /* The last handle closes the store, whichever it is. */
  db = open_small(path);
  ks = default_of(db);
  OK(esker_db_close(&db, &error));
  esker_keyspace_close(&ks);
  db = open_small(path);
  OK(esker_db_close(&db, &error));
}

/* NULLs, handles of another kind, memory that is no handle. */
static void wrong(const char *dir) {
  char path[1024];
  esker_db *db = open_small(path_in(path, dir, "wrong"));
  esker_keyspace *ks = default_of(db), *made = NULL;
  esker_batch *batch = esker_batch_new();
  esker_value value;
  esker_entry entry;
  esker_string text;
  esker_stats stats;
  size_t n;
  bool done;
  esker_db *none = NULL;
  const esker_code invalid = ESKER_INVALID_ARGUMENT;
  GIVES(invalid, esker_db_open(NULL, NULL, &none, &error));
  GIVES(invalid, esker_db_open(path, NULL, NULL, &error));
  GIVES(invalid, esker_db_flush(NULL, &error));
  GIVES(invalid, esker_db_flush((const esker_db *)ks, &error));
  GIVES(invalid, esker_db_sync((const esker_db *)batch, &error));
  GIVES(invalid, esker_get(NULL, "a", 1, &value, &error));
  GIVES(invalid, esker_get(ks, "a", 1, NULL, &error));
  GIVES(invalid, esker_get(ks, NULL, 1, &value, &error));
  GIVES(invalid, esker_get(ks, "a", SIZE_MAX, &value, &error));
  GIVES(invalid, esker_get((const esker_keyspace *)batch, "a", 1, &value, &error));
  GIVES(invalid, esker_get_into(ks, "a", 1, NULL, 5, &n, &error));
  GIVES(invalid, esker_get_into(ks, "a", 1, NULL, 0, NULL, &error));
  GIVES(invalid, esker_put(ks, NULL, 2, "b", 1, ESKER_DURABILITY_DEFAULT, &error));
  GIVES(invalid, esker_put(ks, "a", 1, NULL, 1, ESKER_DURABILITY_DEFAULT, &error));
  GIVES(invalid, esker_put(ks, "a", 1, "b", 1, 77, &error));
  GIVES(invalid, esker_contains(NULL, "a", 1, &error));
  GIVES(invalid, esker_multi_get(ks, 1, NULL, NULL, NULL, &error));
  GIVES(invalid, esker_keyspace_open(NULL, NULL, &made, &error));
  GIVES(invalid, esker_cursor_first(NULL, &entry, &error));
  GIVES(invalid, esker_cursor_read(NULL, false, NULL, 0, &n, &n, &done, &error));
  GIVES(invalid, esker_write(NULL, batch, ESKER_DURABILITY_DEFAULT, &error));
  GIVES(invalid, esker_batch_put(NULL, NULL, "a", 1, "b", 1, &error));
  GIVES(invalid, esker_batch_delete(batch, NULL, NULL, 1, &error));
  GIVES(invalid, esker_snapshot_open(NULL, NULL, &error));
  GIVES(invalid, esker_db_property(NULL, "esker.stats", &text, &error));
  GIVES(invalid, esker_db_stats(NULL, &stats, sizeof stats, &error));
  GIVES(invalid, esker_db_keyspaces(NULL, NULL, NULL, &error));
  GIVES(invalid, esker_db_checkpoint(NULL, NULL, &error));
  GIVES(invalid, esker_db_verify(NULL, NULL, NULL, NULL, &error));
  GIVES(invalid, esker_verify(NULL, NULL, NULL, NULL, NULL, &error));
  GIVES(invalid, esker_repair(NULL, NULL, NULL, &error));
  GIVES(invalid, esker_destroy(NULL, &error));
  GIVES(invalid, esker_bulk_load(ks, NULL, NULL, NULL, &error));
  GIVES(invalid, esker_put(ks, NULL, (64 << 10) + 1, "b", 1, ESKER_DURABILITY_DEFAULT, &error));

  char *long_key = calloc(1, (64 << 10) + 1);
  GIVES(invalid, esker_put(ks, long_key, (64 << 10) + 1, "b", 1, ESKER_DURABILITY_DEFAULT, &error));
  GIVES(invalid, esker_batch_put(batch, ks, long_key, (64 << 10) + 1, "b", 1, &error));
  GIVES(invalid, esker_batch_delete(batch, ks, long_key, (64 << 10) + 1, &error));
  CHECK(esker_batch_count(batch) == 0);
  OK(esker_put(ks, long_key, 64 << 10, "b", 1, ESKER_DURABILITY_DEFAULT, &error));
  free(long_key);

  /* What is not a handle of the kind is not closed. */
  uint64_t memory[4] = {0, 0, 0, 0};
  none = (esker_db *)memory;
  GIVES(invalid, esker_db_close(&none, &error));
  CHECK(none == (esker_db *)memory);
  esker_keyspace *no_keyspace = (esker_keyspace *)batch;
  esker_keyspace_close(&no_keyspace);
  CHECK((void *)no_keyspace == (void *)batch && esker_batch_count(batch) == 0);
  none = (esker_db *)(uintptr_t)((char *)memory + 1);
  GIVES(invalid, esker_db_flush(none, &error));
  esker_batch_clear(NULL);
  CHECK(esker_batch_count(NULL) == 0 && esker_batch_byte_len(NULL) == 0);
  CHECK(esker_snapshot_sequence(NULL) == 0);
  memset(&value, 0, sizeof value);
  esker_value_release(&value);
  esker_value_release(NULL);
  esker_batch_free(&batch);
  esker_batch_free(&batch);
  esker_batch_free(NULL);
  esker_keyspace_close(&ks);
  OK(esker_db_close(&db, &error));
}

static void in_a_child(esker_db *db, esker_keyspace *ks) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);
    esker_keyspace_close(&ks);
    OK(esker_db_close(&db, &error));
    /* The memory of the store is left as it is: another program, so that nobody looks for leaks. */
    execlp("true", "true", (char *)NULL);
    _exit(1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A child that closed what its parent has open waited for a thread that it does not have, or let go of its parent's lock. */
static void forking(const char *dir) {
  char path[1024];
  path_in(path, dir, "forked");
  esker_db *db = open_small(path), *other = NULL;
  esker_keyspace *ks = default_of(db);
  OK(esker_put(ks, "a", 1, "1", 1, ESKER_DURABILITY_DEFAULT, &error));
  in_a_child(db, ks);
  GIVES(ESKER_LOCKED, esker_db_open(path, NULL, &other, &error));
  OK(esker_put(ks, "b", 1, "2", 1, ESKER_DURABILITY_DEFAULT, &error));
  esker_keyspace_close(&ks);
  OK(esker_db_close(&db, &error));

  esker_options *reads = esker_options_new();
  CHECK(esker_options_set_read_only(reads, true) == ESKER_OK);
  OK(esker_db_open(path, reads, &db, &error));
  esker_options_free(&reads);
  in_a_child(db, NULL);
  GIVES(ESKER_LOCKED, esker_db_open(path, NULL, &other, &error));
  OK(esker_db_close(&db, &error));
  OK(esker_db_open(path, NULL, &db, &error));
  OK(esker_db_close(&db, &error));
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  texts();
  options();
  opening(argv[1]);
  after_close(argv[1]);
  wrong(argv[1]);
  forking(argv[1]);
  return 0;
}
