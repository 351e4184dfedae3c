/* One store, many threads: handles are shared, values wander from one to another, and the store is
   closed while others use it. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, WRITES = 300 };

static esker_db *db;
static esker_keyspace *ks;

static void *worker(void *argument) {
  int id = (int)(intptr_t)argument;
  char key[32];
  esker_batch *batch = esker_batch_new();
  for (int i = 0; i < WRITES; i++) {
    snprintf(key, sizeof key, "%d/%06d", id, i);
    OK(esker_put(ks, key, strlen(key), key, strlen(key), ESKER_DURABILITY_DEFAULT, &error));
    has(ks, key, key);
    OK(esker_batch_put(batch, ks, key, strlen(key), "batch", 5, &error));
    if (i % 100 == 99) {
      OK(esker_write(db, batch, ESKER_DURABILITY_SYNCED, &error));
      esker_batch_clear(batch);
      has(ks, key, "batch");
    }
  }
  esker_batch_free(&batch);
  /* A value that another thread releases. */
  esker_value *value = malloc(sizeof *value);
  snprintf(key, sizeof key, "%d/000000", id);
  OK(esker_get(ks, key, strlen(key), value, &error));
  return value;
}

static void *until_closed(void *argument) {
  esker_keyspace *own = argument;
  esker_value value;
  esker_code code;
  do {
    code = esker_get(own, "0/000000", 8, &value, NULL);
    CHECK(code == ESKER_OK || code == ESKER_CLOSED);
    esker_value_release(&value);
    esker_code written = esker_put(own, "x", 1, "y", 1, ESKER_DURABILITY_DEFAULT, NULL);
    CHECK(written == ESKER_OK || written == ESKER_CLOSED);
  } while (code == ESKER_OK);
  esker_keyspace_close(&own);
  return NULL;
}

int main(int argc, char **argv) {
  char path[1024];
  pthread_t threads[THREADS];
  CHECK(argc == 2);
  db = open_small(path_in(path, argv[1], "store"));
  ks = default_of(db);
  for (intptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, worker, (void *)i) == 0);
  for (int i = 0; i < THREADS; i++) {
    void *value;
    CHECK(pthread_join(threads[i], &value) == 0);
    CHECK(is(((esker_value *)value)->data, ((esker_value *)value)->len, "batch"));
    esker_value_release(value);
    free(value);
  }
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, until_closed, default_of(db)) == 0);
  OK(esker_db_close(&db, &error));
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  esker_keyspace_close(&ks);
  return 0;
}
