#include "table_format.h"

#include <snappy.h>

#include "coding.h"
#include "crc32c.h"

namespace leveldb {

void BlockHandle::EncodeTo(std::string* to) const {
  coding::PutVarint64(to, offset);
  coding::PutVarint64(to, size);
}

Status BlockHandle::DecodeFrom(Slice* input) {
  const bool whole = coding::GetVarint64(input, &offset) && coding::GetVarint64(input, &size);
  return whole ? Status::OK() : Status::Corruption("bad block handle");
}

void Footer::EncodeTo(std::string* to) const {
  const size_t start = to->size();
  metaindex.EncodeTo(to);
  index.EncodeTo(to);
  to->resize(start + 2 * BlockHandle::kMostBytes, '\0');
  coding::PutFixed64(to, kMagic);
}

Status Footer::DecodeFrom(const Slice& input) {
  if (input.size() != kBytes || coding::DecodeFixed64(input.data() + 2 * BlockHandle::kMostBytes) != kMagic) {
    return Status::Corruption("not an sstable (bad magic number)");
  }
  Slice handles(input.data(), 2 * BlockHandle::kMostBytes);
  const Status status = metaindex.DecodeFrom(&handles);
  return status.ok() ? index.DecodeFrom(&handles) : status;
}

namespace {

Status Unpack(const Slice& packed, std::string* block) {
  // Of so many bytes at most one can become: a length beyond is damage, and not to be asked of the memory.
  constexpr size_t kMostOfOne = 64;
  size_t len = 0;
  if (!snappy::GetUncompressedLength(packed.data(), packed.size(), &len) || len / kMostOfOne > packed.size()) {
    return Status::Corruption("corrupted compressed block contents");
  }
  block->resize(len);
  if (!snappy::RawUncompress(packed.data(), packed.size(), &(*block)[0])) {
    return Status::Corruption("corrupted compressed block contents");
  }
  return Status::OK();
}

}  // namespace

Status ReadBlock(const RandomAccessFile* file, uint64_t file_size, const BlockHandle& handle, std::string* block) {
  const uint64_t most = file_size < kBlockTrailer ? 0 : file_size - kBlockTrailer;
  if (handle.offset > most || handle.size > most - handle.offset) {
    return Status::Corruption("block beyond the end of the table");
  }
  const size_t size = static_cast<size_t>(handle.size);
  std::string buffer(size + kBlockTrailer, '\0');
  Slice read;
  const Status status = file->Read(handle.offset, buffer.size(), &read, &buffer[0]);
  if (!status.ok()) return status;
  if (read.size() != buffer.size()) return Status::Corruption("truncated block read");
  const uint32_t stored = coding::DecodeFixed32(read.data() + size + 1);
  if (stored != crc32c::Mask(crc32c::Of(Slice(read.data(), size + 1)))) {
    return Status::Corruption("block checksum mismatch");
  }
  switch (read[size]) {
    case kNoCompression:
      block->assign(read.data(), size);
      return Status::OK();
    case kSnappyCompression:
      return Unpack(Slice(read.data(), size), block);
    default:
      return Status::Corruption("bad block type");
  }
}

bool Pack(CompressionType compression, const Slice& block, std::string* packed) {
  if (compression != kSnappyCompression) return false;
  snappy::Compress(block.data(), block.size(), packed);
  // An eighth at least.
  return packed->size() < block.size() - block.size() / 8;
}

}  // namespace leveldb
