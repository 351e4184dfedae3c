// The block of a table that has its filters: one for the keys of the blocks that begin in each 2 KiB of the file.

#ifndef ESKER_COMPAT_LEVELDB_FILTER_BLOCK_H_
#define ESKER_COMPAT_LEVELDB_FILTER_BLOCK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "leveldb/filter_policy.h"
#include "leveldb/slice.h"

namespace leveldb {

class FilterBlockBuilder {
 public:
  explicit FilterBlockBuilder(const FilterPolicy* policy) : policy_(policy) {}

  // The block of the keys that follow begins there.
  void StartBlock(uint64_t offset);
  void AddKey(const Slice& key);
  Slice Finish();

 private:
  void EndFilter();

  const FilterPolicy* const policy_;
  // The keys of the filter to come, one behind the other, and where each begins.
  std::string keys_;
  std::vector<size_t> starts_;
  std::string filters_;
  std::vector<uint32_t> offsets_;
};

class FilterBlockReader {
 public:
  FilterBlockReader(const FilterPolicy* policy, std::string contents);

  // Whether the block that begins at `offset` may hold the key. True where that cannot be told.
  bool KeyMayMatch(uint64_t offset, const Slice& key) const;

 private:
  const FilterPolicy* const policy_;
  const std::string contents_;
  // The filters end, and their offsets begin, here.
  size_t filters_end_ = 0;
  size_t filters_ = 0;
  unsigned bits_ = 0;
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_FILTER_BLOCK_H_
