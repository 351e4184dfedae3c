// WriteBatch: entries are encoded as they are added.

#include "leveldb/write_batch.h"

#include "write_batch_internal.h"

namespace leveldb {

WriteBatch::Handler::~Handler() = default;

WriteBatch::WriteBatch() { Clear(); }

WriteBatch::~WriteBatch() = default;

void WriteBatch::Clear() { rep_.assign(WriteBatchInternal::kHeader, '\0'); }

size_t WriteBatch::ApproximateSize() const { return rep_.size(); }

void WriteBatch::Put(const Slice& key, const Slice& value) {
  WriteBatchInternal::AddToCount(this, 1);
  rep_.push_back(WriteBatchInternal::kPut);
  coding::PutLengthPrefixed(&rep_, key);
  coding::PutLengthPrefixed(&rep_, value);
}

void WriteBatch::Delete(const Slice& key) {
  WriteBatchInternal::AddToCount(this, 1);
  rep_.push_back(WriteBatchInternal::kDelete);
  coding::PutLengthPrefixed(&rep_, key);
}

void WriteBatch::Append(const WriteBatch& source) {
  // Read before it changes: a batch may be appended to itself.
  const uint32_t count = WriteBatchInternal::Count(&source);
  const size_t len = source.rep_.size() - WriteBatchInternal::kHeader;
  WriteBatchInternal::AddToCount(this, count);
  rep_.append(source.rep_, WriteBatchInternal::kHeader, len);
}

Status WriteBatch::Iterate(Handler* handler) const {
  const auto on_put = [handler](const Slice& key, const Slice& value) {
    handler->Put(key, value);
    return true;
  };
  const auto on_delete = [handler](const Slice& key) {
    handler->Delete(key);
    return true;
  };
  return WriteBatchInternal::ForEach(this, on_put, on_delete);
}

}  // namespace leveldb
