/* Writes and reads databases with LevelDB itself.
 *
 *   leveldb write DIR BUFFER BLOCK COMPRESSION   operations from standard input, see below
 *   leveldb write-reverse ...                    the same, with a comparator called idb_cmp1
 *   leveldb read DIR                             all entries to standard output, everything checked
 *   leveldb hold DIR                             opens it, says so with a line, and waits for the end of its input
 *
 * Operations: 'P' key value, 'D' key, 'B' (what follows is a batch), 'E' (it ends), 'C' (compact all).
 * Entries and operations have lengths of four bytes before keys and values, in the machine's order.
 */
#include <leveldb/c.h>
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

static void put(const char *p, size_t len) {
    uint32_t n = len;
    fwrite(&n, 4, 1, stdout);
    fwrite(p, 1, len, stdout);
}

static int reverse(void *state, const char *a, size_t a_len, const char *b, size_t b_len) {
    int order = memcmp(b, a, a_len < b_len ? a_len : b_len);
    return order ? order : a_len < b_len ? 1 : a_len > b_len ? -1 : 0;
}

static void no_state(void *state) {}

static const char *name(void *state) { return "idb_cmp1"; }

int main(int argc, char **argv) {
    char *error = NULL;
    if (argc < 3) return 2;
    leveldb_options_t *options = leveldb_options_create();
    int reversed = !strcmp(argv[1], "write-reverse");
    int writes = reversed || !strcmp(argv[1], "write");
    if (reversed) {
        leveldb_options_set_comparator(options, leveldb_comparator_create(NULL, no_state, reverse, name));
    }
    leveldb_options_set_paranoid_checks(options, 1);
    if (writes) {
        leveldb_options_set_create_if_missing(options, 1);
        leveldb_options_set_write_buffer_size(options, atol(argv[3]));
        leveldb_options_set_max_file_size(options, 1 << 20);
        leveldb_options_set_block_size(options, atol(argv[4]));
        leveldb_options_set_compression(options, atoi(argv[5]));
    }
    leveldb_t *db = leveldb_open(options, argv[2], &error);
    check(error);
    if (writes) {
        leveldb_writeoptions_t *wo = leveldb_writeoptions_create();
        leveldb_writebatch_t *batch = leveldb_writebatch_create();
        int op, in_batch = 0;
        while ((op = getchar()) != EOF) {
            uint32_t k = 0, v = 0;
            if (op == 'P') {
                char *key = bytes(&k), *value = bytes(&v);
                leveldb_writebatch_put(batch, key, k, value, v);
                free(key);
                free(value);
            } else if (op == 'D') {
                char *key = bytes(&k);
                leveldb_writebatch_delete(batch, key, k);
                free(key);
            } else if (op == 'B') {
                in_batch = 1;
            } else if (op == 'E') {
                in_batch = 0;
            } else if (op == 'C') {
                leveldb_compact_range(db, NULL, 0, NULL, 0);
            } else {
                return 2;
            }
            if (!in_batch) {
                leveldb_write(db, wo, batch, &error);
                check(error);
                leveldb_writebatch_clear(batch);
            }
        }
    } else if (!strcmp(argv[1], "read")) {
        leveldb_readoptions_t *ro = leveldb_readoptions_create();
        leveldb_readoptions_set_verify_checksums(ro, 1);
        leveldb_iterator_t *it = leveldb_create_iterator(db, ro);
        for (leveldb_iter_seek_to_first(it); leveldb_iter_valid(it); leveldb_iter_next(it)) {
            size_t k, v;
            const char *key = leveldb_iter_key(it, &k);
            const char *value = leveldb_iter_value(it, &v);
            put(key, k);
            put(value, v);
            /* And found by its key, through the index. */
            size_t again;
            char *found = leveldb_get(db, ro, key, k, &again, &error);
            check(error);
            if (!found || again != v || memcmp(found, value, v)) return 3;
            free(found);
        }
        leveldb_iter_get_error(it, &error);
        check(error);
        leveldb_iter_destroy(it);
        fflush(stdout);
    } else {
        puts("open");
        fflush(stdout);
        while (getchar() != EOF) {
        }
    }
    leveldb_close(db);
    return 0;
}
