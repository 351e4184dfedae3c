// Makes a block: entries in order, of whose keys only what differs from the key before is stored; but for some, the
// restarts, which are whole, and whose places stand at the block's end.

#ifndef ESKER_COMPAT_LEVELDB_BLOCK_BUILDER_H_
#define ESKER_COMPAT_LEVELDB_BLOCK_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "leveldb/options.h"
#include "leveldb/slice.h"

namespace leveldb {

class BlockBuilder {
 public:
  // `options` lives longer, and may change.
  explicit BlockBuilder(const Options* options) : options_(options) {}

  void Add(const Slice& key, const Slice& value);
  // The block, until Reset.
  Slice Finish();
  void Reset();

  size_t SizeEstimate() const;
  bool empty() const { return block_.empty(); }

 private:
  const Options* const options_;
  std::string block_;
  std::string last_key_;
  std::vector<uint32_t> restarts_ = {0};
  int since_restart_ = 0;
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_BLOCK_BUILDER_H_
