#include "filter_block.h"

#include <utility>

#include "coding.h"

namespace leveldb {

namespace {

constexpr unsigned kBits = 11;  // 2 KiB
constexpr size_t kNumber = sizeof(uint32_t);

}  // namespace

void FilterBlockBuilder::StartBlock(uint64_t offset) {
  while (offset >> kBits > offsets_.size()) EndFilter();
}

void FilterBlockBuilder::AddKey(const Slice& key) {
  starts_.push_back(keys_.size());
  keys_.append(key.data(), key.size());
}

// Of no keys there is a filter of no bytes.
void FilterBlockBuilder::EndFilter() {
  offsets_.push_back(static_cast<uint32_t>(filters_.size()));
  if (starts_.empty()) return;
  std::vector<Slice> keys;
  keys.reserve(starts_.size());
  starts_.push_back(keys_.size());
  for (size_t i = 0; i + 1 < starts_.size(); ++i) {
    keys.emplace_back(keys_.data() + starts_[i], starts_[i + 1] - starts_[i]);
  }
  policy_->CreateFilter(keys.data(), static_cast<int>(keys.size()), &filters_);
  keys_.clear();
  starts_.clear();
}

Slice FilterBlockBuilder::Finish() {
  if (!starts_.empty()) EndFilter();
  const uint32_t end = static_cast<uint32_t>(filters_.size());
  for (const uint32_t offset : offsets_) coding::PutFixed32(&filters_, offset);
  coding::PutFixed32(&filters_, end);
  filters_.push_back(static_cast<char>(kBits));
  return filters_;
}

FilterBlockReader::FilterBlockReader(const FilterPolicy* policy, std::string contents)
    : policy_(policy), contents_(std::move(contents)) {
  if (contents_.size() < kNumber + 1) return;
  const size_t end_at = contents_.size() - kNumber - 1;
  const size_t end = coding::DecodeFixed32(contents_.data() + end_at);
  const unsigned bits = static_cast<unsigned char>(contents_.back());
  if (end > end_at || bits >= 64) return;
  filters_end_ = end;
  filters_ = (end_at - end) / kNumber;
  bits_ = bits;
}

bool FilterBlockReader::KeyMayMatch(uint64_t offset, const Slice& key) const {
  const uint64_t which = offset >> bits_;
  if (which >= filters_) return true;
  // Behind the last offset stands where the filters end: it is the end of the last.
  const char* at = contents_.data() + filters_end_ + which * kNumber;
  const size_t start = coding::DecodeFixed32(at), end = coding::DecodeFixed32(at + kNumber);
  if (start > end || end > filters_end_) return true;
  return start != end && policy_->KeyMayMatch(key, Slice(contents_.data() + start, end - start));
}

}  // namespace leveldb
