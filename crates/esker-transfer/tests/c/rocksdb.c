/* Writes databases with RocksDB itself.
 *
 *   rocksdb DIR FAMILY COMPARATOR    operations from standard input into the column family, which is made;
 *                                    with COMPARATOR "reverse" in an order of its own
 *
 * Operations: 'P' key value, 'D' key, 'C' (compact); others are passed over.
 */
#include <rocksdb/c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(char *error) {
    if (error) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
}

static char *bytes(uint32_t *len) {
    if (fread(len, 4, 1, stdin) != 1) exit(2);
    char *p = malloc(*len + 1);
    if (*len && fread(p, *len, 1, stdin) != 1) exit(2);
    return p;
}

static int reverse(void *state, const char *a, size_t a_len, const char *b, size_t b_len) {
    int order = memcmp(b, a, a_len < b_len ? a_len : b_len);
    return order ? order : a_len < b_len ? 1 : a_len > b_len ? -1 : 0;
}

static void no_state(void *state) {}

static const char *name(void *state) { return "reverse"; }

int main(int argc, char **argv) {
    char *error = NULL;
    if (argc < 4) return 2;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, 256 << 10);
    if (!strcmp(argv[3], "reverse"))
        rocksdb_options_set_comparator(options, rocksdb_comparator_create(NULL, no_state, reverse, name));
    rocksdb_t *db = rocksdb_open(options, argv[1], &error);
    check(error);
    rocksdb_column_family_handle_t *family = NULL;
    if (strcmp(argv[2], "default")) {
        family = rocksdb_create_column_family(db, options, argv[2], &error);
        check(error);
    }
    rocksdb_writeoptions_t *wo = rocksdb_writeoptions_create();
    int op;
    while ((op = getchar()) != EOF) {
        uint32_t k, v;
        if (op == 'P') {
            char *key = bytes(&k), *value = bytes(&v);
            if (family) rocksdb_put_cf(db, wo, family, key, k, value, v, &error);
            else rocksdb_put(db, wo, key, k, value, v, &error);
            free(key);
            free(value);
        } else if (op == 'D') {
            char *key = bytes(&k);
            if (family) rocksdb_delete_cf(db, wo, family, key, k, &error);
            else rocksdb_delete(db, wo, key, k, &error);
            free(key);
        } else if (op == 'C' && !family) {
            rocksdb_compact_range(db, NULL, 0, NULL, 0);
        }
        check(error);
    }
    if (family) rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
    return 0;
}
