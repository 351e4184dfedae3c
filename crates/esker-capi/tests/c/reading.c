/* Reads and writes by key, values that are moved, and batches. */
#include "check.h"

static void by_key(const esker_keyspace *ks) {
  esker_value value;
  put(ks, "ash", "Fraxinus excelsior");
  put(ks, "", "the empty key");
  put(ks, "empty", "");
  has(ks, "ash", "Fraxinus excelsior");
  has(ks, "", "the empty key");
  has(ks, "elm", NULL);
  OK(esker_get(ks, NULL, 0, &value, &error));
  CHECK(is(value.data, value.len, "the empty key"));
  esker_value_release(&value);
  /* A value of no bytes is something else than none. */
  OK(esker_get(ks, "empty", 5, &value, &error));
  CHECK(value.data != NULL && value.len == 0);
  esker_value_release(&value);
  CHECK(value.data == NULL);
  OK(esker_put(ks, "nul\0key", 7, "a\0b", 3, ESKER_DURABILITY_BUFFERED, &error));
  OK(esker_get(ks, "nul\0key", 7, &value, &error));
  CHECK(value.len == 3 && memcmp(value.data, "a\0b", 3) == 0);
  esker_value_release(&value);

  OK(esker_contains(ks, "ash", 3, &error));
  GIVES(ESKER_NOT_FOUND, esker_contains(ks, "as", 2, &error));
  OK(esker_delete(ks, "ash", 3, ESKER_DURABILITY_SYNCED, &error));
  OK(esker_delete(ks, "ash", 3, ESKER_DURABILITY_DEFAULT, &error));
  GIVES(ESKER_NOT_FOUND, esker_contains(ks, "ash", 3, &error));
  OK(esker_put(ks, "synced", 6, NULL, 0, ESKER_DURABILITY_SYNCED, &error));
  has(ks, "synced", "");
}

static void copied(const esker_keyspace *ks) {
  char buffer[8] = "#######";
  size_t len = 99;
  put(ks, "oak", "Quercus");
  OK(esker_get_into(ks, "oak", 3, buffer, 4, &len, &error));
  CHECK(len == 7 && memcmp(buffer, "Quer###", 7) == 0);
  OK(esker_get_into(ks, "oak", 3, buffer, sizeof buffer, &len, &error));
  CHECK(is(buffer, len, "Quercus"));
  OK(esker_get_into(ks, "oak", 3, NULL, 0, &len, &error));
  CHECK(len == 7);
  GIVES(ESKER_NOT_FOUND, esker_get_into(ks, "none", 4, buffer, sizeof buffer, &len, &error));
  CHECK(len == 0);
}

static void moved(const esker_keyspace *ks) {
  static const char *const texts[] = {
      "", "short", "long: too many bytes to be kept in the struct, so these stay where they are"};
  for (int i = 0; i < 3; i++) {
    esker_value from, to, *heap = malloc(sizeof *heap);
    put(ks, "moved", texts[i]);
    OK(esker_get(ks, "moved", 5, &from, &error));
    esker_value_move(&to, &from);
    CHECK(from.data == NULL && from.len == 0 && is(to.data, to.len, texts[i]));
    esker_value_release(&from);
    esker_value_move(heap, &to);
    esker_value_move(heap, heap);
    memset(&to, 0xff, sizeof to);
    CHECK(is(heap->data, heap->len, texts[i]));
    /* The value outlives a change of its key. */
    put(ks, "moved", "another");
    CHECK(is(heap->data, heap->len, texts[i]));
    esker_value_move(&to, &from); /* from is empty */
    CHECK(to.data == NULL);
    esker_value_move(NULL, heap); /* releases it */
    CHECK(heap->data == NULL);
    esker_value_move(&to, NULL);
    CHECK(to.data == NULL);
    free(heap);
  }
}

static void many(const esker_keyspace *ks) {
  const void *keys[] = {"one", "none", "three", NULL};
  const size_t lens[] = {3, 4, 5, 0};
  esker_value values[4];
  put(ks, "one", "1");
  put(ks, "three", "3");
  put(ks, "", "0");
  OK(esker_multi_get(ks, 4, keys, lens, values, &error));
  CHECK(is(values[0].data, values[0].len, "1") && values[1].data == NULL);
  CHECK(is(values[2].data, values[2].len, "3") && is(values[3].data, values[3].len, "0"));
  for (int i = 0; i < 4; i++) esker_value_release(&values[i]);
  OK(esker_multi_get(ks, 0, NULL, NULL, NULL, &error));
  keys[1] = NULL; /* with a length: that cannot be */
  GIVES(ESKER_INVALID_ARGUMENT, esker_multi_get(ks, 4, keys, lens, values, &error));
  for (int i = 0; i < 4; i++) CHECK(values[i].data == NULL);
  /* Never written before, and no keyspace: each may be released all the same. */
  memset(values, 0x5a, sizeof values);
  GIVES(ESKER_INVALID_ARGUMENT, esker_multi_get(NULL, 4, keys, lens, values, &error));
  for (int i = 0; i < 4; i++) esker_value_release(&values[i]);
}

static void batches(const esker_db *db, const esker_keyspace *ks) {
  esker_batch *batch = esker_batch_new();
  CHECK(esker_batch_count(batch) == 0 && esker_batch_byte_len(batch) == 0);
  OK(esker_batch_put(batch, NULL, "beech", 5, "Fagus", 5, &error));
  OK(esker_batch_put(batch, ks, "birch", 5, "Betula", 6, &error));
  OK(esker_batch_delete(batch, NULL, "oak", 3, &error));
  CHECK(esker_batch_count(batch) == 3 && esker_batch_byte_len(batch) > 20);
  has(ks, "oak", "Quercus");
  OK(esker_write(db, batch, ESKER_DURABILITY_SYNCED, &error));
  has(ks, "oak", NULL);
  has(ks, "beech", "Fagus");
  put(ks, "beech", "changed");
  OK(esker_write(db, batch, ESKER_DURABILITY_DEFAULT, &error)); /* again */
  has(ks, "beech", "Fagus");
  GIVES(ESKER_INVALID_ARGUMENT, esker_write(db, batch, 5, &error));
  esker_batch_clear(batch);
  CHECK(esker_batch_count(batch) == 0);
  OK(esker_batch_delete(batch, ks, "beech", 5, &error));
  OK(esker_write(db, batch, ESKER_DURABILITY_BUFFERED, &error));
  has(ks, "beech", NULL);
  esker_batch_free(&batch);
}

int main(int argc, char **argv) {
  char path[1024];
  CHECK(argc == 2);
  esker_db *db = open_small(path_in(path, argv[1], "store"));
  esker_keyspace *ks = default_of(db);
  by_key(ks);
  copied(ks);
  moved(ks);
  many(ks);
  batches(db, ks);
  OK(esker_db_flush(db, &error));
  has(ks, "birch", "Betula"); /* out of a table now */
  many(ks);
  moved(ks);
  esker_keyspace_close(&ks);
  OK(esker_db_close(&db, &error));
  return 0;
}
