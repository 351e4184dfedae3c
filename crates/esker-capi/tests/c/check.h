/* What the programs check with. Each gets an empty directory as its argument, makes its stores in it, and exits with 0
   when everything was as it should be. */
#ifndef CHECK_H
#define CHECK_H

#include <esker.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void failed(const char *file, int line, const char *what, const char *why) {
  fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, why);
  exit(1);
}

#define CHECK(condition) \
  ((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition, "is not so"))

/* A call gives this code, and an error object of that code exactly when it is an error. It has an argument `&error`. */
#define GIVES(expected, call)                                                                  \
  do {                                                                                         \
    esker_error *error = (esker_error *)(uintptr_t)8; /* never read */                         \
    esker_code got = (call);                                                                   \
    if (got != (expected))                                                                     \
      failed(__FILE__, __LINE__, #call, error ? esker_error_message(error) : esker_code_name(got)); \
    CHECK((error != NULL) == (got > ESKER_NOT_FOUND));                                         \
    CHECK(esker_error_code(error) == (error ? got : ESKER_OK));                                \
    CHECK((strlen(esker_error_message(error)) > 0) == (error != NULL));                        \
    esker_error_free(&error);                                                                  \
    CHECK(error == NULL);                                                                      \
  } while (0)

#define OK(call) GIVES(ESKER_OK, call)

/* A path in the directory of the test: `buffer` holds it. */
static inline const char *path_in(char buffer[1024], const char *dir, const char *name) {
  snprintf(buffer, 1024, "%s/%s", dir, name);
  return buffer;
}

/* A store that needs little memory. */
static inline esker_options *small_options(void) {
  esker_options *options = esker_options_new();
  CHECK(options != NULL);
  CHECK(esker_options_set_memory(options, 1 << 20) == ESKER_OK);
  CHECK(esker_options_set_segment_size(options, 64 << 10) == ESKER_OK);
  return options;
}

static inline esker_db *open_small(const char *path) {
  esker_options *options = small_options();
  esker_db *db = NULL;
  OK(esker_db_open(path, options, &db, &error));
  esker_options_free(&options);
  return db;
}

static inline esker_keyspace *default_of(const esker_db *db) {
  esker_keyspace *keyspace = NULL;
  OK(esker_keyspace_open(db, NULL, &keyspace, &error));
  return keyspace;
}

static inline void put(const esker_keyspace *keyspace, const char *key, const char *value) {
  OK(esker_put(keyspace, key, strlen(key), value, strlen(value), ESKER_DURABILITY_DEFAULT, &error));
}

static inline int is(const void *data, size_t len, const char *text) {
  return data != NULL && len == strlen(text) && memcmp(data, text, len) == 0;
}

/* The value of a key is this text; NULL: it has none. */
static inline void has(const esker_keyspace *keyspace, const char *key, const char *text) {
  esker_value value;
  if (text == NULL) {
    GIVES(ESKER_NOT_FOUND, esker_get(keyspace, key, strlen(key), &value, &error));
    CHECK(value.data == NULL && value.len == 0);
  } else {
    OK(esker_get(keyspace, key, strlen(key), &value, &error));
    CHECK(is(value.data, value.len, text));
  }
  esker_value_release(&value);
  esker_value_release(&value);
}

#endif
