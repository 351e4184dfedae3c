#include "block_builder.h"

#include <algorithm>

#include "coding.h"

namespace leveldb {

void BlockBuilder::Add(const Slice& key, const Slice& value) {
  size_t shared = 0;
  if (since_restart_ < options_->block_restart_interval) {
    const size_t common = std::min(last_key_.size(), key.size());
    while (shared < common && last_key_[shared] == key[shared]) ++shared;
  } else {
    restarts_.push_back(static_cast<uint32_t>(block_.size()));
    since_restart_ = 0;
  }
  coding::PutVarint32(&block_, static_cast<uint32_t>(shared));
  coding::PutVarint32(&block_, static_cast<uint32_t>(key.size() - shared));
  coding::PutVarint32(&block_, static_cast<uint32_t>(value.size()));
  block_.append(key.data() + shared, key.size() - shared);
  block_.append(value.data(), value.size());
  last_key_.assign(key.data(), key.size());
  ++since_restart_;
}

Slice BlockBuilder::Finish() {
  for (const uint32_t restart : restarts_) coding::PutFixed32(&block_, restart);
  coding::PutFixed32(&block_, static_cast<uint32_t>(restarts_.size()));
  return block_;
}

void BlockBuilder::Reset() {
  block_.clear();
  last_key_.clear();
  restarts_.assign(1, 0);
  since_restart_ = 0;
}

size_t BlockBuilder::SizeEstimate() const { return block_.size() + (restarts_.size() + 1) * sizeof(uint32_t); }

}  // namespace leveldb
