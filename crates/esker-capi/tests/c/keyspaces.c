/* Keyspaces, snapshots and figures. */
#include "check.h"

int main(int argc, char **argv) {
  char path[1024];
  CHECK(argc == 2);
  esker_db *db = open_small(path_in(path, argv[1], "store")), *second;
  esker_keyspace *ks = default_of(db), *log = NULL, *same = NULL, *view = NULL, *other = NULL;

  esker_keyspace_options *options = esker_keyspace_options_new();
  CHECK(esker_keyspace_options_set_order(options, ESKER_ORDER_REVERSE) == ESKER_OK);
  CHECK(esker_keyspace_options_set_compression(options, ESKER_COMPRESSION_NONE) == ESKER_OK);
  OK(esker_keyspace_create(db, "log", options, &log, &error));
  esker_keyspace_options_free(&options);
  GIVES(ESKER_KEYSPACE, esker_keyspace_create(db, "log", NULL, &same, &error));
  CHECK(same == NULL);
  OK(esker_keyspace_create(db, "made only", NULL, NULL, &error));
  GIVES(ESKER_INVALID_ARGUMENT, esker_keyspace_create(db, "", NULL, &same, &error));
  GIVES(ESKER_INVALID_ARGUMENT, esker_keyspace_create(db, "\xff", NULL, &same, &error));
  GIVES(ESKER_KEYSPACE, esker_keyspace_open(db, "none", &same, &error));
  OK(esker_keyspace_open(db, "log", &same, &error));

  esker_string *names = NULL;
  size_t count = 0;
  OK(esker_db_keyspaces(db, &names, &count, &error));
  CHECK(count == 3 && strcmp(names[0].data, "default") == 0 && strcmp(names[1].data, "log") == 0);
  CHECK(names[2].len == 9 && names[2].data[9] == '\0');
  esker_strings_free(&names, count);
  CHECK(names == NULL);
  esker_strings_free(&names, count);

  /* One order each. */
  put(log, "a", "1");
  put(same, "b", "2");
  put(ks, "a", "default");
  esker_cursor *cursor = NULL;
  esker_entry entry;
  OK(esker_cursor_open(log, false, &cursor, &error));
  OK(esker_cursor_first(cursor, &entry, &error));
  CHECK(is(entry.key, entry.key_len, "b"));
  esker_cursor_close(&cursor);

  /* As a snapshot sees it. */
  esker_snapshot *snapshot = NULL;
  OK(esker_snapshot_open(db, &snapshot, &error));
  CHECK(esker_snapshot_sequence(snapshot) == 3);
  put(log, "a", "later");
  put(log, "c", "later");
  OK(esker_keyspace_at(log, snapshot, &view, &error));
  esker_snapshot_close(&snapshot); /* the view keeps it */
  has(view, "a", "1");
  has(view, "c", NULL);
  has(log, "a", "later");
  GIVES(ESKER_NOT_FOUND, esker_contains(view, "c", 1, &error));
  const void *keys[] = {"a", "c"};
  const size_t lens[] = {1, 1};
  esker_value values[2];
  OK(esker_multi_get(view, 2, keys, lens, values, &error));
  CHECK(is(values[0].data, values[0].len, "1") && values[1].data == NULL);
  esker_value_release(&values[0]);
  OK(esker_cursor_open(view, true, &cursor, &error));
  OK(esker_cursor_last(cursor, &entry, &error));
  CHECK(is(entry.key, entry.key_len, "a") && entry.value_len == 0 && entry.value != NULL);
  esker_cursor_close(&cursor);
  GIVES(ESKER_READ_ONLY, esker_put(view, "a", 1, "b", 1, ESKER_DURABILITY_DEFAULT, &error));
  GIVES(ESKER_READ_ONLY, esker_delete(view, "a", 1, ESKER_DURABILITY_DEFAULT, &error));
  esker_batch *batch = esker_batch_new();
  GIVES(ESKER_READ_ONLY, esker_batch_put(batch, view, "a", 1, "b", 1, &error));
  GIVES(ESKER_READ_ONLY, esker_batch_delete(batch, view, "a", 1, &error));

  /* Neither a batch nor a snapshot goes to another store. */
  char other_path[1024];
  second = open_small(path_in(other_path, argv[1], "second"));
  OK(esker_batch_put(batch, log, "a", 1, "b", 1, &error));
  GIVES(ESKER_INVALID_ARGUMENT, esker_write(second, batch, ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_snapshot_open(second, &snapshot, &error));
  GIVES(ESKER_INVALID_ARGUMENT, esker_keyspace_at(ks, snapshot, &other, &error));
  CHECK(other == NULL);
  esker_snapshot_close(&snapshot);
  OK(esker_db_close(&second, &error));
  esker_batch_free(&batch);

  /* Figures. */
  char key[16], value[200];
  for (int i = 0; i < 2000; i++) {
    snprintf(key, sizeof key, "key %06d", i);
    snprintf(value, sizeof value, "%0199d", i);
    OK(esker_put(ks, key, strlen(key), value, 199, ESKER_DURABILITY_DEFAULT, &error));
  }
  esker_stats stats;
  esker_keyspace_stat stat;
  OK(esker_keyspace_stats(log, &stat, sizeof stat, &error));
  CHECK(stat.id == 1 && stat.memtable_entries + stat.entries >= 4);
  OK(esker_db_flush(db, &error));
  OK(esker_db_wait_for_compactions(db, &error));
  OK(esker_keyspace_stats(ks, &stat, sizeof stat, &error));
  CHECK(stat.id == 0 && stat.entries == 2001 && stat.runs == 1 && stat.tables >= 1);
  CHECK(stat.memtable_entries == 0 && stat.raw_bytes > 400000 && stat.table_bytes > 0);
  OK(esker_db_stats(db, &stats, sizeof stats, &error));
  CHECK(stats.keyspaces == 3 && stats.sequence >= 2005 && stats.bytes_written > 400000);
  CHECK(stats.halted == 0 && stats.compactions > 0 && stats.memory_budget == 1 << 20);
  CHECK(stats.snapshots == 1); /* that of the view */
  /* Of a program with fewer figures, and of one with more. */
  struct { esker_stats known; uint64_t more; } larger;
  memset(&larger, 0xff, sizeof larger);
  OK(esker_db_stats(db, &larger.known, sizeof larger, &error));
  CHECK(larger.more == 0 && larger.known.mappings > 0);
  uint64_t smaller[3] = {77, 77, 77};
  OK(esker_db_stats(db, (esker_stats *)smaller, 16, &error));
  CHECK(smaller[0] == stats.sequence && smaller[1] == 3 && smaller[2] == 77);
  GIVES(ESKER_INVALID_ARGUMENT, esker_db_stats(db, &stats, 0, &error));

  /* Orders have names. */
  esker_string order;
  OK(esker_keyspace_comparator(ks, &order, &error));
  CHECK(strcmp(order.data, "esker.bytewise") == 0 && order.len == 14);
  esker_string_free(&order);
  OK(esker_keyspace_comparator(log, &order, &error));
  CHECK(strcmp(order.data, "esker.reverse") == 0);
  esker_string_free(&order);
  GIVES(ESKER_INVALID_ARGUMENT, esker_keyspace_comparator(ks, NULL, &error));

  uint64_t all = 0, half = 0, none = 77;
  OK(esker_approximate_size(ks, NULL, 0, NULL, 0, &all, &error));
  OK(esker_approximate_size(ks, NULL, 0, "key 001000", 10, &half, &error));
  OK(esker_approximate_size(ks, "z", 1, NULL, 0, &none, &error));
  CHECK(0 < half && half < all && none == 0);
  OK(esker_approximate_size(ks, "z", 1, "a", 1, &none, &error)); /* a range that is none */
  CHECK(none == 0);
  OK(esker_compact_range(ks, "z", 1, "a", 1, &error));
  OK(esker_compact_range(ks, "key 000500", 10, NULL, 0, &error));
  OK(esker_compact_range(ks, NULL, 0, NULL, 0, &error));
  GIVES(ESKER_INVALID_ARGUMENT, esker_compact_range(ks, NULL, 3, NULL, 0, &error));
  has(ks, "a", "default");

  /* Dropped: its handles say so, whatever comes after it. */
  OK(esker_keyspace_drop(db, "log", &error));
  GIVES(ESKER_KEYSPACE, esker_keyspace_drop(db, "log", &error));
  GIVES(ESKER_INVALID_ARGUMENT, esker_keyspace_drop(db, "default", &error));
  OK(esker_keyspace_create(db, "log", NULL, NULL, &error));
  GIVES(ESKER_KEYSPACE, esker_put(log, "a", 1, "b", 1, ESKER_DURABILITY_DEFAULT, &error));
  GIVES(ESKER_KEYSPACE, esker_keyspace_stats(log, &stat, sizeof stat, &error));
  CHECK(stat.id == 0 && stat.blob_threshold == 0);
  GIVES(ESKER_KEYSPACE, esker_keyspace_comparator(log, &order, &error));
  CHECK(order.data == NULL && order.len == 0);
  GIVES(ESKER_KEYSPACE, esker_cursor_open(same, false, &cursor, &error));

  esker_keyspace_close(&view);
  esker_keyspace_close(&same);
  esker_keyspace_close(&log);
  esker_keyspace_close(&ks);
  OK(esker_db_close(&db, &error));
  return 0;
}
