/* Checkpoints, properties, checking, repairing, removing. */
#include "check.h"

#include <dirent.h>

/* Inverts a byte in the middle of the table of the store. */
static void damage(const char *path) {
  char name[2048] = "";
  struct dirent *e;
  DIR *dir = opendir(path);
  CHECK(dir != NULL);
  while ((e = readdir(dir)) != NULL)
    if (strstr(e->d_name, ".tbl")) snprintf(name, sizeof name, "%s/%s", path, e->d_name);
  closedir(dir);
  FILE *f = fopen(name, "r+b");
  CHECK(f != NULL && fseek(f, 5000, SEEK_SET) == 0);
  int byte = fgetc(f);
  CHECK(byte != EOF && fseek(f, 5000, SEEK_SET) == 0 && fputc(byte ^ 0xff, f) != EOF && fclose(f) == 0);
}

int main(int argc, char **argv) {
  char path[1024], copy[1024], key[16], value[64];
  CHECK(argc == 2);
  esker_db *db = open_small(path_in(path, argv[1], "store"));
  esker_keyspace *ks = default_of(db);
  for (int i = 0; i < 1000; i++) {
    snprintf(key, sizeof key, "key %06d", i);
    snprintf(value, sizeof value, "%060d", i * 7919);
    put(ks, key, value);
  }
  OK(esker_db_flush(db, &error));
  OK(esker_db_sync(db, &error));
  OK(esker_db_resume(db, &error)); /* nothing to resume from */

  esker_string text;
  OK(esker_db_property(db, "esker.sequence", &text, &error));
  CHECK(strcmp(text.data, "1000") == 0 && text.len == 4);
  esker_string_free(&text);
  OK(esker_db_property(db, "esker.halted", &text, &error));
  CHECK(text.len == 0 && text.data != NULL && text.data[0] == '\0');
  esker_string_free(&text);
  GIVES(ESKER_NOT_FOUND, esker_db_property(db, "esker.none", &text, &error));
  CHECK(text.data == NULL && text.len == 0);
  GIVES(ESKER_INVALID_ARGUMENT, esker_db_property(db, NULL, &text, &error));

  OK(esker_db_checkpoint(db, path_in(copy, argv[1], "copy"), &error));
  esker_code again = esker_db_checkpoint(db, copy, NULL); /* it is there already */
  CHECK(again > ESKER_NOT_FOUND);
  GIVES(ESKER_LOCKED, esker_verify(path, NULL, NULL, NULL, NULL, &error));
  GIVES(ESKER_LOCKED, esker_repair(path, NULL, NULL, &error));
  GIVES(ESKER_LOCKED, esker_destroy(path, &error));
  esker_keyspace_close(&ks);
  OK(esker_db_close(&db, &error));

  /* A sound store. */
  OK(esker_verify(copy, NULL, NULL, NULL, NULL, &error));
  OK(esker_repair(copy, NULL, &text, &error));
  CHECK(strncmp(text.data, "sound: ", 7) == 0);
  esker_string_free(&text);

  /* A damaged one: the shared file is damaged for both. */
  esker_options *options = small_options();
  damage(copy);
  GIVES(ESKER_CORRUPTION, esker_verify(copy, options, NULL, NULL, &text, &error));
  CHECK(strstr(text.data, "\nproblem: ") != NULL);
  esker_string_free(&text);
  db = open_small(copy);
  GIVES(ESKER_CORRUPTION, esker_db_verify(db, NULL, NULL, NULL, &error));
  OK(esker_db_close(&db, &error));
  OK(esker_repair(copy, options, &text, &error));
  CHECK(strncmp(text.data, "repaired: ", 10) == 0 && strstr(text.data, "\nlost: ") != NULL);
  esker_string_free(&text);
  OK(esker_verify(copy, options, NULL, NULL, NULL, &error));
  db = open_small(copy);
  ks = default_of(db);
  snprintf(value, sizeof value, "%060d", 999 * 7919);
  has(ks, "key 000999", value); /* beside the damage */
  esker_keyspace_close(&ks);
  OK(esker_db_close(&db, &error));
  OK(esker_repair(copy, NULL, NULL, &error));
  esker_options_free(&options);

  OK(esker_destroy(copy, &error));
  OK(esker_destroy(path, &error));
  OK(esker_destroy(path, &error)); /* nothing is there, as was asked for */
  GIVES(ESKER_NOT_A_STORE, esker_verify(path, NULL, NULL, NULL, NULL, &error));
  GIVES(ESKER_NOT_A_STORE, esker_repair(path, NULL, NULL, &error));
  return 0;
}
