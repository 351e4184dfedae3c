// Three functions of LevelDB's C interface that Basho's fork, older than they are, lacks.

#include <cstdlib>

#include "leveldb/db.h"

extern "C" {

void leveldb_free(void* memory) { std::free(memory); }

int leveldb_major_version() { return leveldb::kMajorVersion; }

int leveldb_minor_version() { return leveldb::kMinorVersion; }

}  // extern "C"
