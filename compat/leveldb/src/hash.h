// The hash that LevelDB's filters are made with: it is part of their format.

#ifndef ESKER_COMPAT_LEVELDB_HASH_H_
#define ESKER_COMPAT_LEVELDB_HASH_H_

#include <cstdint>

#include "leveldb/slice.h"

namespace leveldb {

uint32_t Hash(const Slice& bytes, uint32_t seed);

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_HASH_H_
