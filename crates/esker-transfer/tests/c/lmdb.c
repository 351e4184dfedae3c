/* Writes environments with LMDB itself.
 *
 *   lmdb PATH NAME FLAGS    operations from standard input into the database NAME (- is the main one),
 *                           opened with these flags; PATH is a file where it ends in .mdb
 *
 * Operations: 'P' key value, 'D' key; others are passed over.
 */
#include <lmdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int code) {
    if (code && code != MDB_NOTFOUND) {
        fprintf(stderr, "%s\n", mdb_strerror(code));
        exit(1);
    }
}

static MDB_val bytes(void) {
    uint32_t len;
    if (fread(&len, 4, 1, stdin) != 1) exit(2);
    MDB_val v = {len, malloc(len + 1)};
    if (len && fread(v.mv_data, len, 1, stdin) != 1) exit(2);
    return v;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    size_t len = strlen(argv[1]);
    int is_file = len > 4 && !strcmp(argv[1] + len - 4, ".mdb");
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    check(mdb_env_create(&env));
    check(mdb_env_set_mapsize(env, 256 << 20));
    check(mdb_env_set_maxdbs(env, 8));
    check(mdb_env_open(env, argv[1], MDB_NOSYNC | (is_file ? MDB_NOSUBDIR : 0), 0600));
    check(mdb_txn_begin(env, NULL, 0, &txn));
    check(mdb_dbi_open(txn, strcmp(argv[2], "-") ? argv[2] : NULL, MDB_CREATE | atoi(argv[3]), &dbi));
    int op;
    while ((op = getchar()) != EOF) {
        if (op == 'P') {
            MDB_val key = bytes(), value = bytes();
            check(mdb_put(txn, dbi, &key, &value, 0));
            free(key.mv_data);
            free(value.mv_data);
        } else if (op == 'D') {
            MDB_val key = bytes();
            check(mdb_del(txn, dbi, &key, NULL));
            free(key.mv_data);
        }
    }
    check(mdb_txn_commit(txn));
    mdb_env_close(env);
    return 0;
}
