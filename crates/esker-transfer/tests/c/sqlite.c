/* Runs statements with SQLite itself: sqlite FILE STATEMENTS; then 'P' operations from standard input go into
 * the table kv of the columns k and v, as blobs. */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static char *bytes(uint32_t *len) {
    if (fread(len, 4, 1, stdin) != 1) exit(2);
    char *p = malloc(*len + 1);
    if (*len && fread(p, *len, 1, stdin) != 1) exit(2);
    return p;
}

int main(int argc, char **argv) {
    sqlite3 *db;
    char *error = NULL;
    if (argc < 3 || sqlite3_open(argv[1], &db) || sqlite3_exec(db, argv[2], NULL, NULL, &error)) {
        fprintf(stderr, "%s\n", error ? error : "no database");
        return 1;
    }
    int op;
    sqlite3_stmt *insert = NULL;
    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    while ((op = getchar()) != EOF) {
        uint32_t k, v;
        if (op == 'D') free(bytes(&k));
        if (op != 'P') continue;
        char *key = bytes(&k), *value = bytes(&v);
        if (!insert) sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO kv(k, v) VALUES (?, ?)", -1, &insert, NULL);
        sqlite3_bind_blob(insert, 1, key, k, free);
        sqlite3_bind_blob(insert, 2, value, v, free);
        if (sqlite3_step(insert) != SQLITE_DONE) return 3;
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return sqlite3_close(db);
}
