#include "block.h"

#include <utility>

#include "coding.h"
#include "leveldb/comparator.h"

namespace leveldb {

namespace {

class BlockIterator final : public Iterator {
 public:
  BlockIterator(const Comparator* comparator, const char* block, size_t entries_end, uint32_t restarts)
      : comparator_(comparator), block_(block), end_(entries_end), restarts_(restarts) {}

  bool Valid() const override { return valid_; }
  Status status() const override { return status_; }
  Slice key() const override { return key_; }
  Slice value() const override { return value_; }

  void SeekToFirst() override {
    ToRestart(0);
    Read();
  }

  void SeekToLast() override {
    ToRestart(restarts_ - 1);
    while (Read() && next_ < end_) {
    }
  }

  void Seek(const Slice& target) override {
    // The last restart whose key is before the target: [low, high) holds it.
    uint32_t low = 0, high = restarts_;
    while (high - low > 1) {
      const uint32_t middle = low + (high - low) / 2;
      ToRestart(middle);
      if (!Read()) return Damaged();
      if (comparator_->Compare(key_, target) < 0) {
        low = middle;
      } else {
        high = middle;
      }
    }
    ToRestart(low);
    while (Read() && comparator_->Compare(key_, target) < 0) {
    }
  }

  void Next() override {
    assert(valid_);
    Read();
  }

  // From the restart before to the entry before.
  void Prev() override {
    assert(valid_);
    const size_t here = start_;
    uint32_t restart = restart_;
    while (restart > 0 && RestartAt(restart) >= here) --restart;
    ToRestart(restart);
    if (next_ >= here) {
      valid_ = false;
      return;
    }
    while (Read() && next_ < here) {
    }
  }

 private:
  size_t RestartAt(uint32_t restart) const {
    return coding::DecodeFixed32(block_ + end_ + restart * sizeof(uint32_t));
  }

  // Before the entry there.
  void ToRestart(uint32_t restart) {
    valid_ = false;
    restart_ = restart;
    next_ = RestartAt(restart);
    key_.clear();
  }

  void Damaged() {
    valid_ = false;
    if (status_.ok()) status_ = Status::Corruption("bad entry in block");
    next_ = end_;
    key_.clear();
  }

  // Reads the entry that is next. False at the end.
  bool Read() {
    valid_ = false;
    if (next_ == end_) return false;
    if (next_ > end_) return Damaged(), false;
    Slice rest(block_ + next_, end_ - next_);
    uint32_t shared = 0, own = 0, value = 0;
    const bool lengths = coding::GetVarint32(&rest, &shared) && coding::GetVarint32(&rest, &own) &&
                         coding::GetVarint32(&rest, &value);
    if (!lengths || shared > key_.size() || uint64_t{own} + value > rest.size()) return Damaged(), false;
    key_.resize(shared);
    key_.append(rest.data(), own);
    value_ = Slice(rest.data() + own, value);
    start_ = next_;
    next_ = static_cast<size_t>(value_.data() + value - block_);
    while (restart_ + 1 < restarts_ && RestartAt(restart_ + 1) <= start_) ++restart_;
    valid_ = true;
    return true;
  }

  const Comparator* const comparator_;
  const char* const block_;
  const size_t end_;
  const uint32_t restarts_;  // at least one
  // The entry it stands on, the restart at or before that, and the place of the entry behind.
  bool valid_ = false;
  size_t start_ = 0;
  size_t next_ = 0;
  uint32_t restart_ = 0;
  std::string key_;
  Slice value_;
  Status status_;
};

}  // namespace

Block::Block(std::string contents) : contents_(std::move(contents)) {
  constexpr size_t kNumber = sizeof(uint32_t);
  if (contents_.size() < kNumber) return;
  const size_t before = contents_.size() - kNumber;
  restarts_ = coding::DecodeFixed32(contents_.data() + before);
  if (restarts_ > before / kNumber) return;
  entries_end_ = before - restarts_ * kNumber;
  sound_ = true;
}

Iterator* Block::NewIterator(const Comparator* comparator) const {
  if (!sound_) return NewErrorIterator(Status::Corruption("bad block contents"));
  if (restarts_ == 0) return NewEmptyIterator();
  return new BlockIterator(comparator, contents_.data(), entries_end_, restarts_);
}

}  // namespace leveldb
