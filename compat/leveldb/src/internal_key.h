// Keys in LevelDB's own tables: the user's, then a number of eight bytes, the sequence and in its lowest byte whether it
// is a put or a delete. And bytes in words.

#ifndef ESKER_COMPAT_LEVELDB_INTERNAL_KEY_H_
#define ESKER_COMPAT_LEVELDB_INTERNAL_KEY_H_

#include <cstdint>
#include <string>

#include "leveldb/slice.h"

namespace leveldb {

struct InternalKey {
  Slice user_key;
  uint64_t sequence;
  bool is_put;
};

// False for bytes that are none.
bool ParseInternalKey(const Slice& bytes, InternalKey* key);

// `bytes`, with those that cannot be printed as \xNN.
std::string Escaped(const Slice& bytes);

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_INTERNAL_KEY_H_
