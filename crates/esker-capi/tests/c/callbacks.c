/* Code of the program's that runs inside the library: comparators, entries of a bulk load, progress. They fail, stop,
   and call back. */
#include "check.h"

#include <ctype.h>

struct order {
  int destroyed;
  bool fails;
  /* What it calls while it compares, if anything, and what came of it. */
  esker_keyspace *calls;
  esker_keyspace *closes;
  esker_db *closes_db;
  esker_code answer;
};

/* Letters without their case. */
static int compare(void *state, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len) {
  struct order *order = state;
  if (order->fails) return ESKER_COMPARE_FAILED;
  if (order->calls)
    order->answer = esker_put(order->calls, "a", 1, "b", 1, ESKER_DURABILITY_DEFAULT, NULL);
  if (order->closes) esker_keyspace_close(&order->closes);
  if (order->closes_db) order->answer = esker_db_close(&order->closes_db, NULL);
  for (size_t i = 0; i < a_len && i < b_len; i++) {
    int d = tolower(a[i]) - tolower(b[i]);
    if (d != 0) return d;
  }
  return (a_len > b_len) - (a_len < b_len);
}

static void destroy(void *state) { ((struct order *)state)->destroyed++; }

static esker_comparator comparator_of(struct order *order) {
  esker_comparator comparator = {"test.no-case", order, compare, destroy};
  return comparator;
}

static void orders(const char *dir) {
  char path[1024];
  struct order order = {0}, unused = {0};
  esker_comparator comparator = comparator_of(&order), other = comparator_of(&unused);
  esker_options *options = small_options();
  esker_db *db = NULL;

  /* One that is not taken stays the caller's. */
  other.name = NULL;
  CHECK(esker_options_set_comparator(options, &other) == ESKER_INVALID_ARGUMENT);
  other.name = "\xff";
  CHECK(esker_options_set_comparator(options, &other) == ESKER_INVALID_ARGUMENT);
  other = comparator_of(&unused);
  other.compare = NULL;
  CHECK(esker_options_set_comparator(options, &other) == ESKER_INVALID_ARGUMENT);
  CHECK(unused.destroyed == 0);
  other = comparator_of(&unused);
  CHECK(esker_options_set_comparator(options, &other) == ESKER_OK);
  CHECK(esker_options_set_comparator(options, &comparator) == ESKER_OK);
  CHECK(unused.destroyed == 1 && order.destroyed == 0); /* replaced */
  other.name = "esker.mine";
  unused.destroyed = 0;
  esker_options *taken = small_options();
  CHECK(esker_options_set_comparator(taken, &other) == ESKER_OK);
  GIVES(ESKER_INVALID_ARGUMENT, esker_db_open(path_in(path, dir, "none"), taken, &db, &error));
  esker_options_free(&taken);
  CHECK(unused.destroyed == 1);

  OK(esker_db_open(path_in(path, dir, "orders"), options, &db, &error));
  esker_keyspace *ks = default_of(db), *own = NULL;
  put(ks, "b", "1");
  put(ks, "C", "2");
  put(ks, "A", "3");
  has(ks, "a", "3"); /* the same key */
  esker_cursor *cursor = NULL;
  esker_entry entry;
  OK(esker_cursor_open(ks, false, &cursor, &error));
  OK(esker_cursor_first(cursor, &entry, &error));
  CHECK(is(entry.key, entry.key_len, "A"));
  OK(esker_cursor_seek(cursor, "B", 1, &entry, &error));
  CHECK(is(entry.key, entry.key_len, "b"));

  /* One that fails: the call says so, nothing is written, and it goes on when it can compare again. */
  order.fails = true;
  esker_error *error = NULL;
  esker_value value;
  CHECK(esker_get(ks, "a", 1, &value, &error) == ESKER_COMPARATOR);
  CHECK(strstr(esker_error_message(error), "ESKER_COMPARE_FAILED") != NULL);
  CHECK(strstr(esker_error_message(error), "default") != NULL && value.data == NULL);
  esker_error_free(&error);
  GIVES(ESKER_COMPARATOR, esker_put(ks, "d", 1, "4", 1, ESKER_DURABILITY_DEFAULT, &error));
  GIVES(ESKER_COMPARATOR, esker_cursor_seek(cursor, "c", 1, &entry, &error));
  GIVES(ESKER_COMPARATOR, esker_cursor_next(cursor, &entry, &error)); /* again */
  GIVES(ESKER_COMPARATOR, esker_cursor_entry(cursor, &entry, &error));
  char buffer[100];
  size_t used, count;
  bool done;
  GIVES(ESKER_COMPARATOR, esker_cursor_read(cursor, false, buffer, 100, &used, &count, &done, &error));
  CHECK(entry.key == NULL && used == 0 && count == 0 && !done);
  order.fails = false;
  /* On a busy machine the background thread has asked it too meanwhile, and writes are stopped. */
  OK(esker_db_resume(db, &error));
  OK(esker_cursor_seek(cursor, "c", 1, &entry, &error));
  CHECK(is(entry.key, entry.key_len, "C"));
  OK(esker_cursor_entry(cursor, &entry, &error));
  has(ks, "d", NULL);
  esker_cursor_close(&cursor);

  /* One that calls the store, or closes it: refused, and everything stays as it is. */
  order.calls = ks;
  has(ks, "a", "3");
  CHECK(order.answer == ESKER_COMPARATOR);
  order.calls = NULL;
  esker_keyspace *second = default_of(db);
  order.closes = second;
  has(ks, "a", "3");
  CHECK(order.closes == second);
  order.closes = NULL;
  esker_keyspace_close(&second);
  order.answer = ESKER_OK;
  order.closes_db = db;
  has(ks, "a", "3");
  CHECK(order.answer == ESKER_COMPARATOR && order.closes_db == db);
  order.closes_db = NULL;
  put(ks, "E", "5");

  /* A keyspace's own. */
  struct order keyspace_order = {0};
  comparator = comparator_of(&keyspace_order);
  esker_keyspace_options *keyspace_options = esker_keyspace_options_new();
  CHECK(esker_keyspace_options_set_comparator(keyspace_options, &comparator) == ESKER_OK);
  OK(esker_keyspace_create(db, "own", keyspace_options, &own, &error));
  esker_keyspace_options_free(&keyspace_options);
  put(own, "x", "1");
  has(own, "X", "1");
  CHECK(keyspace_order.destroyed == 0);

  esker_options_free(&options);
  CHECK(order.destroyed == 0); /* the store has it */
  OK(esker_db_flush(db, &error));
  OK(esker_db_close(&db, &error));
  esker_keyspace_close(&ks);
  esker_keyspace_close(&own);
  CHECK(order.destroyed == 1 && keyspace_order.destroyed == 1);

  /* The next open needs both. */
  GIVES(ESKER_COMPARATOR, esker_db_open(path, NULL, &db, &error));
  order.destroyed = keyspace_order.destroyed = 0;
  options = small_options();
  other = comparator_of(&order);
  CHECK(esker_options_set_comparator(options, &other) == ESKER_OK);
  CHECK(esker_options_set_keyspace_comparator(options, "own", &comparator) == ESKER_OK);
  CHECK(esker_options_set_keyspace_comparator(options, NULL, &comparator) == ESKER_INVALID_ARGUMENT);
  OK(esker_db_open(path, options, &db, &error));
  esker_options_free(&options);
  OK(esker_keyspace_open(db, "own", &own, &error));
  has(own, "X", "1");
  esker_keyspace_close(&own);
  OK(esker_db_close(&db, &error));
  CHECK(order.destroyed == 1 && keyspace_order.destroyed == 1);
}

struct source {
  int at, end, stop_at, repeat_at, answers;
  esker_keyspace *reads;
  char key[16];
  esker_keyspace **closes;
  esker_db **closes_db;
};

static int next(void *state, const void **key, size_t *key_len, const void **value, size_t *value_len) {
  struct source *s = state;
  if (s->at == s->end) return 0;
  if (s->at == s->stop_at) return -1;
  if (s->answers) return s->answers;
  if (s->reads) has(s->reads, "00000", NULL); /* it may use the store */
  if (s->closes) esker_keyspace_close(s->closes);
  if (s->closes_db) OK(esker_db_close(s->closes_db, &error));
  /* The memory is used again: what it pointed to has been read. */
  snprintf(s->key, sizeof s->key, "%05d", s->at == s->repeat_at ? s->at - 1 : s->at);
  *key = s->key;
  *key_len = 5;
  *value = s->at % 2 ? s->key : NULL;
  *value_len = s->at % 2 ? 5 : 0;
  s->at++;
  return 1;
}

static void loads(const char *dir) {
  char path[1024];
  esker_db *db = open_small(path_in(path, dir, "loads"));
  esker_keyspace *ks = default_of(db), *view = NULL;
  uint64_t loaded = 77;
  struct source source = {0, 3000, 2000, -1, 0, ks, "", NULL, NULL};
  GIVES(ESKER_ABORTED, esker_bulk_load(ks, next, &source, &loaded, &error));
  CHECK(loaded == 0);
  struct source repeats = {0, 3000, -1, 100, 0, NULL, "", NULL, NULL};
  GIVES(ESKER_INVALID_ARGUMENT, esker_bulk_load(ks, next, &repeats, &loaded, &error));
  struct source odd = {0, 10, -1, -1, 2, NULL, "", NULL, NULL};
  GIVES(ESKER_INVALID_ARGUMENT, esker_bulk_load(ks, next, &odd, &loaded, &error));
  has(ks, "00000", NULL);
  struct source whole = {0, 3000, -1, -1, 0, ks, "", NULL, NULL};
  OK(esker_bulk_load(ks, next, &whole, &loaded, &error));
  CHECK(loaded == 3000);
  has(ks, "00000", "");
  has(ks, "02999", "02999");
  struct source nothing = {0, 0, -1, -1, 0, NULL, "", NULL, NULL};
  OK(esker_bulk_load(ks, next, &nothing, NULL, &error));
  esker_snapshot *snapshot = NULL;
  OK(esker_snapshot_open(db, &snapshot, &error));
  OK(esker_keyspace_at(ks, snapshot, &view, &error));
  GIVES(ESKER_READ_ONLY, esker_bulk_load(view, next, &nothing, NULL, &error));
  esker_keyspace_close(&view);
  esker_snapshot_close(&snapshot);

  /* The callback closes the handle of the load, and then the store: nothing is loaded then. */
  esker_keyspace *again = default_of(db);
  struct source closes = {0, 3, -1, -1, 0, NULL, "", &again, NULL};
  OK(esker_bulk_load(again, next, &closes, &loaded, &error));
  CHECK(again == NULL && loaded == 3);
  struct source ends = {0, 3, -1, -1, 0, NULL, "", NULL, &db};
  GIVES(ESKER_CLOSED, esker_bulk_load(ks, next, &ends, &loaded, &error));
  CHECK(db == NULL && loaded == 0);
  esker_keyspace_close(&ks);
}

struct told {
  int calls, stop_after;
  uint64_t done, total;
  esker_db **closes;
};

static int progress(void *state, uint64_t done, uint64_t total) {
  struct told *told = state;
  CHECK(done <= total && done >= told->done);
  told->done = done;
  told->total = total;
  if (told->closes) OK(esker_db_close(told->closes, &error));
  return ++told->calls == told->stop_after;
}

static void progresses(const char *dir) {
  char path[1024];
  path_in(path, dir, "loads");
  esker_string report;
  struct told told = {0}, stops = {0, 1, 0, 0, NULL};
  OK(esker_verify(path, NULL, progress, &told, &report, &error));
  CHECK(told.calls > 0 && told.done == told.total && told.total > 0);
  CHECK(strstr(report.data, "0 problems") != NULL && strlen(report.data) == report.len);
  esker_string_free(&report);
  esker_string_free(&report);
  CHECK(report.data == NULL && report.len == 0);
  GIVES(ESKER_ABORTED, esker_verify(path, NULL, progress, &stops, &report, &error));
  CHECK(stops.calls == 1 && report.data == NULL);
  esker_db *db = open_small(path);
  struct told open = {0}, stops_open = {0, 1, 0, 0, NULL}, closes = {0, 0, 0, 0, &db};
  OK(esker_db_verify(db, progress, &open, &report, &error));
  CHECK(open.calls > 0 && report.len > 0);
  esker_string_free(&report);
  GIVES(ESKER_ABORTED, esker_db_verify(db, progress, &stops_open, NULL, &error));
  OK(esker_db_verify(db, NULL, NULL, NULL, &error));
  /* What it looks at it keeps, also when the callback closes the store. */
  OK(esker_db_verify(db, progress, &closes, NULL, &error));
  CHECK(db == NULL);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  orders(argv[1]);
  loads(argv[1]);
  progresses(argv[1]);
  return 0;
}
