// What a WriteBatch holds: a header of twelve bytes (a sequence number, unused here, and the count of entries), then
// the entries: a tag, the key with its length before it, and for a put the value likewise.

#ifndef ESKER_COMPAT_LEVELDB_WRITE_BATCH_INTERNAL_H_
#define ESKER_COMPAT_LEVELDB_WRITE_BATCH_INTERNAL_H_

#include <cstdint>

#include "coding.h"
#include "leveldb/write_batch.h"

namespace leveldb {

class WriteBatchInternal {
 public:
  static constexpr size_t kCountAt = sizeof(uint64_t);
  static constexpr size_t kHeader = kCountAt + sizeof(uint32_t);

  enum Tag : char { kDelete = 0, kPut = 1 };

  // 0 of a batch that is too short to have one, which is damage.
  static uint32_t Count(const WriteBatch* batch) {
    return batch->rep_.size() < kHeader ? 0 : coding::DecodeFixed32(batch->rep_.data() + kCountAt);
  }
  static uint64_t Sequence(const WriteBatch* batch) { return coding::DecodeFixed64(batch->rep_.data()); }
  static void AddToCount(WriteBatch* batch, uint32_t more) {
    coding::EncodeFixed(&batch->rep_[kCountAt], Count(batch) + more);
  }
  // For bytes from elsewhere; what is wrong with them Iterate says.
  static void SetContents(WriteBatch* batch, const Slice& contents) {
    batch->rep_.assign(contents.data(), contents.size());
  }

  // Walks the entries of `batch`, for which `on_put(key, value)` and `on_delete(key)` are called. Each returns
  // whether to go on. A template, so that a write costs no virtual calls.
  template <typename OnPut, typename OnDelete>
  static Status ForEach(const WriteBatch* batch, OnPut on_put, OnDelete on_delete) {
    Slice rest(batch->rep_);
    if (rest.size() < kHeader) return Status::Corruption("malformed WriteBatch (too small)");
    rest.remove_prefix(kHeader);
    uint32_t found = 0;
    for (Slice key, value; !rest.empty(); ++found) {
      const char tag = rest[0];
      rest.remove_prefix(1);
      bool go_on = false;
      if (tag == kPut) {
        if (!coding::GetLengthPrefixed(&rest, &key) || !coding::GetLengthPrefixed(&rest, &value)) {
          return Status::Corruption("bad WriteBatch Put");
        }
        go_on = on_put(key, value);
      } else if (tag == kDelete) {
        if (!coding::GetLengthPrefixed(&rest, &key)) return Status::Corruption("bad WriteBatch Delete");
        go_on = on_delete(key);
      } else {
        return Status::Corruption("unknown WriteBatch tag");
      }
      if (!go_on) return Status::OK();
    }
    if (found != Count(batch)) return Status::Corruption("WriteBatch has wrong count");
    return Status::OK();
  }
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_WRITE_BATCH_INTERNAL_H_
