#include "log_reader.h"

#include <utility>

#include "coding.h"
#include "crc32c.h"

namespace leveldb {

namespace {

constexpr size_t kBlock = 32768;
constexpr size_t kHeader = 7;
constexpr size_t kLengthAt = 4;
constexpr size_t kTypeAt = 6;

}  // namespace

LogReader::LogReader(SequentialFile* file, Report report)
    : file_(file), report_(std::move(report)), space_(new char[kBlock]) {}

unsigned LogReader::Drop(size_t bytes, const char* why) {
  report_(bytes, Status::Corruption(why));
  return kBad;
}

void LogReader::DropBegun(const char* why) {
  if (!begun_.empty()) Drop(begun_.size(), why);
  begun_.clear();
}

bool LogReader::NextBlock() {
  block_.clear();
  if (at_end_) return false;
  const Status status = file_->Read(kBlock, &block_, space_.get());
  if (!status.ok()) {
    report_(kBlock, status);
    block_.clear();
    at_end_ = true;
    return false;
  }
  block_end_ += block_.size();
  at_end_ = block_.size() < kBlock;
  return true;
}

unsigned LogReader::Fragment(Slice* bytes, uint64_t* offset) {
  // What is too short for a header fills up a block, or is cut off.
  while (block_.size() < kHeader) {
    if (!NextBlock()) return kEnd;
  }
  const char* header = block_.data();
  const size_t len = coding::DecodeFixed<uint16_t>(header + kLengthAt);
  const unsigned type = static_cast<unsigned char>(header[kTypeAt]);
  *offset = block_end_ - block_.size();
  const size_t rest = block_.size();
  if (kHeader + len > rest) {
    block_.clear();
    return at_end_ ? unsigned{kEnd} : Drop(rest, "bad record length");
  }
  // Files that were made larger in advance hold zeros.
  if (type == kNone && len == 0) {
    block_.clear();
    return kBad;
  }
  const uint32_t stored = coding::DecodeFixed32(header);
  if (stored != crc32c::Mask(crc32c::Of(Slice(header + kTypeAt, 1 + len)))) {
    // The length may be what is damaged: nothing behind it in the block can be found.
    block_.clear();
    return Drop(rest, "checksum mismatch");
  }
  *bytes = Slice(header + kHeader, len);
  block_.remove_prefix(kHeader + len);
  return type;
}

bool LogReader::Read(Slice* record, uint64_t* offset) {
  begun_.clear();
  bool is_begun = false;
  uint64_t at = 0;
  for (Slice bytes;;) {
    const unsigned type = Fragment(&bytes, &at);
    switch (type) {
      case kWhole:
        DropBegun("partial record without end(1)");
        *record = bytes;
        *offset = at;
        return true;
      case kFirst:
        DropBegun("partial record without end(2)");
        begun_ = bytes.ToString();
        is_begun = true;
        *offset = at;
        break;
      case kMiddle:
      case kLast:
        if (!is_begun) {
          Drop(bytes.size(), type == kLast ? "missing start of fragmented record(2)"
                                           : "missing start of fragmented record(1)");
          break;
        }
        begun_.append(bytes.data(), bytes.size());
        if (type == kMiddle) break;
        *record = begun_;
        return true;
      case kEnd:
        return false;
      case kBad:
        if (is_begun) DropBegun("error in middle of record");
        is_begun = false;
        break;
      default: {
        const std::string why = "unknown record type " + std::to_string(type);
        Drop(bytes.size() + begun_.size(), why.c_str());
        begun_.clear();
        is_begun = false;
      }
    }
  }
}

}  // namespace leveldb
