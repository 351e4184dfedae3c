#include "db_iterator.h"

#include "db_impl.h"
#include "esker_status.h"

namespace leveldb {

namespace {

class DBIterator final : public Iterator {
 public:
  // Takes the cursor.
  explicit DBIterator(esker_cursor* cursor) : cursor_(cursor) {}
  ~DBIterator() override { esker_cursor_close(&cursor_); }

  bool Valid() const override { return valid_; }

  void SeekToFirst() override {
    esker_error* error = nullptr;
    Arrive(esker_cursor_first(cursor_, &entry_, &error), &error);
  }
  void SeekToLast() override {
    esker_error* error = nullptr;
    Arrive(esker_cursor_last(cursor_, &entry_, &error), &error);
  }
  void Seek(const Slice& target) override {
    esker_error* error = nullptr;
    Arrive(esker_cursor_seek(cursor_, Data(target), target.size(), &entry_, &error), &error);
  }
  void Next() override {
    assert(valid_);
    if (!valid_) return;
    esker_error* error = nullptr;
    Arrive(esker_cursor_next(cursor_, &entry_, &error), &error);
  }
  void Prev() override {
    assert(valid_);
    if (!valid_) return;
    esker_error* error = nullptr;
    Arrive(esker_cursor_prev(cursor_, &entry_, &error), &error);
  }

  Slice key() const override {
    assert(valid_);
    return Slice(reinterpret_cast<const char*>(entry_.key), entry_.key_len);
  }
  Slice value() const override {
    assert(valid_);
    return Slice(reinterpret_cast<const char*>(entry_.value), entry_.value_len);
  }
  Status status() const override { return status_; }

 private:
  void Arrive(esker_code code, esker_error** error) {
    valid_ = code == ESKER_OK;
    // The end of the entries is no error. One that was stays, however the iterator moves.
    if (!valid_ && code != ESKER_NOT_FOUND) Fail(code, error);
  }

  void Fail(esker_code code, esker_error** error) {
    const Status status = TakeStatus(code, error);
    if (status_.ok()) status_ = status;
  }

  esker_cursor* cursor_;
  esker_entry entry_ = {};
  bool valid_ = false;
  Status status_;
};

}  // namespace

Iterator* NewDBIterator(const esker_keyspace* source) {
  esker_cursor* cursor = nullptr;
  esker_error* error = nullptr;
  const esker_code code = esker_cursor_open(source, false, &cursor, &error);
  if (code != ESKER_OK) return NewErrorIterator(TakeStatus(code, &error));
  return new DBIterator(cursor);
}

}  // namespace leveldb
