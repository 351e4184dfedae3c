// The parts of a table of LevelDB: blocks, each with a type and a checksum behind it; and the footer, which says where
// the index is, and the index of the blocks about the table.

#ifndef ESKER_COMPAT_LEVELDB_TABLE_FORMAT_H_
#define ESKER_COMPAT_LEVELDB_TABLE_FORMAT_H_

#include <cstdint>
#include <string>

#include "leveldb/env.h"
#include "leveldb/options.h"
#include "leveldb/status.h"

namespace leveldb {

// Behind each block: how it is packed, a byte, and the checksum of the block with that byte.
constexpr size_t kBlockTrailer = 5;

// Where a block is.
class BlockHandle {
 public:
  // Two varints.
  static constexpr size_t kMostBytes = 20;

  uint64_t offset = 0;
  uint64_t size = 0;

  void EncodeTo(std::string* to) const;
  Status DecodeFrom(Slice* input);
};

class Footer {
 public:
  static constexpr uint64_t kMagic = 0xdb4775248b80fb57;
  static constexpr size_t kBytes = 2 * BlockHandle::kMostBytes + sizeof(kMagic);

  BlockHandle metaindex;
  BlockHandle index;

  void EncodeTo(std::string* to) const;
  Status DecodeFrom(const Slice& input);
};

// Reads the block, checks it against its checksum and unpacks it. Nothing of the handle is trusted.
Status ReadBlock(const RandomAccessFile* file, uint64_t file_size, const BlockHandle& handle, std::string* block);

// Packs a block. False where that does not pay: it is then stored as it is.
bool Pack(CompressionType compression, const Slice& block, std::string* packed);

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_TABLE_FORMAT_H_
