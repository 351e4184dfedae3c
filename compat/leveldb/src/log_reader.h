// Reads LevelDB's logs, which its manifests are too: records, cut into fragments that fit into blocks of 32 KiB, each
// with a checksum, a length and a type before it.

#ifndef ESKER_COMPAT_LEVELDB_LOG_READER_H_
#define ESKER_COMPAT_LEVELDB_LOG_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "leveldb/env.h"
#include "leveldb/status.h"

namespace leveldb {

class LogReader {
 public:
  // Told of bytes that are passed over, and why.
  using Report = std::function<void(size_t bytes, const Status& why)>;

  LogReader(SequentialFile* file, Report report);

  // The next whole record, until the next call; and where it begins. False at the end. A record that the file's end cuts
  // off is what a killed writer leaves, and is no error.
  bool Read(Slice* record, uint64_t* offset);

 private:
  enum Type : unsigned char { kNone = 0, kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4, kEnd, kBad };

  // The type of the next fragment, its bytes and its place.
  unsigned Fragment(Slice* bytes, uint64_t* offset);
  bool NextBlock();
  unsigned Drop(size_t bytes, const char* why);
  // A record that has begun, and that something else follows.
  void DropBegun(const char* why);

  SequentialFile* const file_;
  const Report report_;
  const std::unique_ptr<char[]> space_;
  Slice block_;
  uint64_t block_end_ = 0;
  bool at_end_ = false;
  std::string begun_;
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_LOG_READER_H_
