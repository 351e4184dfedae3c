// Reads a block. What is in it is not trusted: where it is not sound, its iterators say so.

#ifndef ESKER_COMPAT_LEVELDB_BLOCK_H_
#define ESKER_COMPAT_LEVELDB_BLOCK_H_

#include <cstdint>
#include <string>

#include "leveldb/iterator.h"

namespace leveldb {

class Comparator;

class Block {
 public:
  explicit Block(std::string contents);

  // The block lives longer than the iterator.
  Iterator* NewIterator(const Comparator* comparator) const;
  size_t size() const { return contents_.size(); }

 private:
  const std::string contents_;
  // Where the entries end and the restarts begin; of a block that is none, no restarts.
  size_t entries_end_ = 0;
  uint32_t restarts_ = 0;
  bool sound_ = false;
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_BLOCK_H_
