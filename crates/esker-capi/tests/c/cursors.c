/* Cursors: step by step, and by the buffer. */
#include "check.h"

enum { ENTRIES = 500 };

static int number(const esker_entry *entry) {
  char text[8] = "";
  CHECK(entry->key_len == 6);
  memcpy(text, entry->key, 6);
  CHECK(atoi(text) % 7 == (int)entry->value_len);
  return atoi(text);
}

static void steps(const esker_keyspace *ks) {
  esker_cursor *c = NULL;
  esker_entry entry;
  OK(esker_cursor_open(ks, false, &c, &error));
  memset(&entry, 0xff, sizeof entry);
  GIVES(ESKER_NOT_FOUND, esker_cursor_entry(c, &entry, &error)); /* a new one is on none */
  CHECK(entry.key == NULL && entry.key_len == 0 && entry.value == NULL && entry.value_len == 0);
  GIVES(ESKER_NOT_FOUND, esker_cursor_next(c, &entry, &error));
  GIVES(ESKER_NOT_FOUND, esker_cursor_prev(c, NULL, &error));
  OK(esker_cursor_first(c, &entry, &error));
  for (int i = 0; i < ENTRIES; i++) {
    CHECK(number(&entry) == i);
    GIVES(i + 1 < ENTRIES ? ESKER_OK : ESKER_NOT_FOUND, esker_cursor_next(c, &entry, &error));
  }
  CHECK(entry.key == NULL);
  OK(esker_cursor_last(c, &entry, &error));
  for (int i = ENTRIES - 1; i >= 0; i--) {
    CHECK(number(&entry) == i);
    GIVES(i > 0 ? ESKER_OK : ESKER_NOT_FOUND, esker_cursor_prev(c, &entry, &error));
  }
  OK(esker_cursor_seek(c, "000100", 6, &entry, &error));
  CHECK(number(&entry) == 100);
  OK(esker_cursor_seek(c, "000100.", 7, NULL, &error));
  OK(esker_cursor_entry(c, &entry, &error));
  CHECK(number(&entry) == 101);
  OK(esker_cursor_seek_for_prev(c, "000100.", 7, &entry, &error));
  CHECK(number(&entry) == 100);
  OK(esker_cursor_seek(c, NULL, 0, &entry, &error));
  CHECK(number(&entry) == 0);
  GIVES(ESKER_NOT_FOUND, esker_cursor_seek(c, "1", 1, &entry, &error));
  GIVES(ESKER_NOT_FOUND, esker_cursor_seek_for_prev(c, "", 0, &entry, &error));
  GIVES(ESKER_INVALID_ARGUMENT, esker_cursor_seek(c, NULL, 1, &entry, &error));
  put(ks, "0002005", "later"); /* not seen */
  OK(esker_cursor_seek(c, "000200", 6, &entry, &error));
  OK(esker_cursor_next(c, &entry, &error));
  CHECK(number(&entry) == 201);
  OK(esker_delete(ks, "0002005", 7, ESKER_DURABILITY_DEFAULT, &error));
  esker_cursor_close(&c);
  esker_cursor_close(&c);
  esker_cursor_close(NULL);

  OK(esker_cursor_open(ks, true, &c, &error));
  OK(esker_cursor_seek(c, "000006", 6, &entry, &error));
  CHECK(entry.key_len == 6 && entry.value_len == 0);
  esker_cursor_close(&c);
}

/* Reads all, by buffers of this size. */
static void buffers(const esker_keyspace *ks, bool backward, size_t capacity) {
  char *buffer = malloc(capacity); /* of just this size: valgrind sees one byte too many */
  size_t used = 99, count = 99;
  bool done = true;
  int seen = 0;
  esker_cursor *c = NULL;
  OK(esker_cursor_open(ks, false, &c, &error));
  if (backward) OK(esker_cursor_last(c, NULL, &error));
  else OK(esker_cursor_first(c, NULL, &error));
  do {
    OK(esker_cursor_read(c, backward, buffer, capacity, &used, &count, &done, &error));
    CHECK(count > 0 && used <= capacity);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
      uint32_t lens[2];
      memcpy(lens, buffer + at, 8);
      esker_entry entry = {(uint8_t *)buffer + at + 8, lens[0], (uint8_t *)buffer + at + 8 + lens[0], lens[1]};
      CHECK(number(&entry) == (backward ? ENTRIES - 1 - seen : seen));
      seen++;
      at += 8 + lens[0] + lens[1];
    }
    CHECK(at == used);
  } while (!done);
  CHECK(seen == ENTRIES);
  /* Then it is on none, and there is nothing to read. */
  OK(esker_cursor_read(c, backward, buffer, capacity, &used, &count, &done, &error));
  CHECK(count == 0 && used == 0 && done);
  esker_cursor_close(&c);
  free(buffer);
}

static void too_small(const esker_keyspace *ks) {
  char buffer[20];
  size_t used, count;
  bool done;
  esker_cursor *c = NULL;
  esker_entry entry;
  OK(esker_cursor_open(ks, false, &c, &error));
  OK(esker_cursor_seek(c, "000006", 6, NULL, &error));
  OK(esker_cursor_read(c, false, NULL, 0, &used, &count, &done, &error));
  CHECK(count == 0 && used == 8 + 6 + 6 && !done);
  OK(esker_cursor_read(c, false, buffer, 19, &used, &count, &done, &error));
  CHECK(count == 0 && used == 20 && !done);
  OK(esker_cursor_entry(c, &entry, &error)); /* it has not moved */
  CHECK(number(&entry) == 6);
  OK(esker_cursor_read(c, false, buffer, 20, &used, &count, &done, &error));
  CHECK(count == 1 && used == 20 && !done);
  OK(esker_cursor_entry(c, &entry, &error));
  CHECK(number(&entry) == 7);
  GIVES(ESKER_INVALID_ARGUMENT, esker_cursor_read(c, false, NULL, 9, &used, &count, &done, &error));
  GIVES(ESKER_INVALID_ARGUMENT, esker_cursor_read(c, false, buffer, 9, NULL, &count, &done, &error));
  esker_cursor_close(&c);
}

/* Where a cursor goes may be said by the key that it is on: a search wrote over that while it still compared it, where a block
   ended before it, and a flush took it away. */
static void to_own_keys(esker_db *db) {
  esker_keyspace *ks = NULL;
  esker_cursor *c = NULL;
  esker_entry entry;
  unsigned random = 1;
  char key[16], value[100];
  for (int before = 100; before < 150; before++) {
    snprintf(key, sizeof key, "own %d", before);
    OK(esker_keyspace_create(db, key, NULL, &ks, &error));
    for (int i = 0; i < before + 100; i++) {
      for (size_t at = 0; at < sizeof value; at++) {
        random = random * 1103515245u + 12345u;
        value[at] = (char)(random >> 16); /* nothing to pack */
      }
      snprintf(key, sizeof key, "%s%03d", i < before ? "aaa" : "abc", i < before ? i : i - before);
      OK(esker_put(ks, key, 6, value, sizeof value, ESKER_DURABILITY_DEFAULT, &error));
    }
    OK(esker_cursor_open(ks, false, &c, &error));
    OK(esker_cursor_seek(c, "abc005", 6, &entry, &error));
    OK(esker_db_flush(db, &error));
    for (int i = 0; i < 2; i++) {
      OK(esker_cursor_seek(c, entry.key, 2, &entry, &error));
      CHECK(entry.key_len == 6 && memcmp(entry.key, "abc000", 6) == 0);
      OK(esker_cursor_seek_for_prev(c, entry.key, 3, &entry, &error));
      snprintf(key, sizeof key, "aaa%03d", before - 1);
      CHECK(entry.key_len == 6 && memcmp(entry.key, key, 6) == 0);
      OK(esker_cursor_next(c, &entry, &error));
    }
    esker_cursor_close(&c);
    esker_keyspace_close(&ks);
  }
}

int main(int argc, char **argv) {
  char path[1024], key[8];
  CHECK(argc == 2);
  esker_db *db = open_small(path_in(path, argv[1], "store"));
  esker_keyspace *ks = default_of(db);
  for (int i = 0; i < ENTRIES; i++) {
    snprintf(key, sizeof key, "%06d", i % 1000000);
    OK(esker_put(ks, key, 6, "vvvvvvv", i % 7, ESKER_DURABILITY_DEFAULT, &error));
    if (i == ENTRIES / 2) OK(esker_db_flush(db, &error)); /* half in a table, half in the log */
  }
  for (int settled = 0; settled < 2; settled++) {
    steps(ks);
    for (size_t capacity = 20; capacity < 100000; capacity = capacity * 3 + 1) {
      buffers(ks, false, capacity);
      buffers(ks, true, capacity);
    }
    too_small(ks);
    OK(esker_db_wait_for_compactions(db, &error)); /* then all in one run */
  }
  to_own_keys(db);
  esker_keyspace_close(&ks);
  OK(esker_db_close(&db, &error));
  return 0;
}
