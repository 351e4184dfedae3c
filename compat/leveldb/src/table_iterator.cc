#include "table_iterator.h"

#include <memory>
#include <string>

namespace leveldb {

namespace {

class TableIterator final : public Iterator {
 public:
  TableIterator(Iterator* index, OpenBlock open, void* table, const ReadOptions& options)
      : index_(index), open_(open), table_(table), options_(options) {}

  bool Valid() const override { return block_ != nullptr && block_->Valid(); }
  Slice key() const override { return block_->key(); }
  Slice value() const override { return block_->value(); }

  Status status() const override {
    if (!index_->status().ok()) return index_->status();
    if (block_ != nullptr && !block_->status().ok()) return block_->status();
    return status_;
  }

  void SeekToFirst() override {
    index_->SeekToFirst();
    Enter();
    if (block_ != nullptr) block_->SeekToFirst();
    SkipForward();
  }
  void SeekToLast() override {
    index_->SeekToLast();
    Enter();
    if (block_ != nullptr) block_->SeekToLast();
    SkipBackward();
  }
  void Seek(const Slice& target) override {
    index_->Seek(target);
    Enter();
    if (block_ != nullptr) block_->Seek(target);
    SkipForward();
  }
  void Next() override {
    assert(Valid());
    block_->Next();
    SkipForward();
  }
  void Prev() override {
    assert(Valid());
    block_->Prev();
    SkipBackward();
  }

 private:
  bool InBlock() const { return block_ != nullptr && block_->Valid(); }

  // Blocks without entries, and such as cannot be read, are passed; what was wrong with them is kept.
  void SkipForward() {
    while (!InBlock() && index_->Valid()) {
      index_->Next();
      Enter();
      if (block_ != nullptr) block_->SeekToFirst();
    }
    if (!InBlock()) Leave();
  }
  void SkipBackward() {
    while (!InBlock() && index_->Valid()) {
      index_->Prev();
      Enter();
      if (block_ != nullptr) block_->SeekToLast();
    }
    if (!InBlock()) Leave();
  }

  // Into the block that the index stands on, which may be the one it is in.
  void Enter() {
    if (!index_->Valid()) return Leave();
    const Slice handle = index_->value();
    if (block_ != nullptr && handle == handle_) return;
    Leave();
    handle_ = handle.ToString();
    block_.reset(open_(table_, options_, handle));
  }
  void Leave() {
    if (block_ != nullptr && status_.ok()) status_ = block_->status();
    block_.reset();
  }

  const std::unique_ptr<Iterator> index_;
  const OpenBlock open_;
  void* const table_;
  const ReadOptions options_;
  std::unique_ptr<Iterator> block_;
  std::string handle_;
  Status status_;
};

}  // namespace

Iterator* NewTableIterator(Iterator* index, OpenBlock open, void* table, const ReadOptions& options) {
  return new TableIterator(index, open, table, options);
}

}  // namespace leveldb
