// What the tests of stores share: opening, reading and writing in a line each.

#ifndef ESKER_COMPAT_LEVELDB_TESTS_STORES_H_
#define ESKER_COMPAT_LEVELDB_TESTS_STORES_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "harness.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"

namespace leveldb {

inline Options Create() {
  Options options;
  options.create_if_missing = true;
  return options;
}

inline std::unique_ptr<DB> Open(const std::string& name, const Options& options = Create()) {
  DB* db = nullptr;
  CHECK_OK(DB::Open(options, name, &db));
  CHECK(db != nullptr);
  return std::unique_ptr<DB>(db);
}

inline Status TryOpen(const std::string& name, const Options& options) {
  DB* db = reinterpret_cast<DB*>(1);
  const Status status = DB::Open(options, name, &db);
  if (!status.ok()) CHECK(db == nullptr);
  if (status.ok()) delete db;
  return status;
}

inline std::string Get(DB* db, const Slice& key, const Snapshot* snapshot = nullptr) {
  ReadOptions options;
  options.snapshot = snapshot;
  std::string value;
  const Status status = db->Get(options, key, &value);
  if (status.IsNotFound()) return "NOT_FOUND";
  return status.ok() ? value : status.ToString();
}

inline void Put(DB* db, const Slice& key, const Slice& value) { CHECK_OK(db->Put(WriteOptions(), key, value)); }
inline void Delete(DB* db, const Slice& key) { CHECK_OK(db->Delete(WriteOptions(), key)); }

inline std::string Contents(DB* db, const Snapshot* snapshot = nullptr) {
  ReadOptions options;
  options.snapshot = snapshot;
  const std::unique_ptr<Iterator> iterator(db->NewIterator(options));
  std::string forward, backward;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    forward += "(" + iterator->key().ToString() + "=" + iterator->value().ToString() + ")";
  }
  CHECK_OK(iterator->status());
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
    backward = "(" + iterator->key().ToString() + "=" + iterator->value().ToString() + ")" + backward;
  }
  CHECK_OK(iterator->status());
  CHECK_EQ(forward, backward);
  return forward;
}

inline std::string Number(int i) {
  char text[16];
  std::snprintf(text, sizeof(text), "%08d", i);
  return text;
}

// A number of Esker's statistics.
inline uint64_t Statistic(DB* db, const std::string& name) {
  std::string stats;
  CHECK(db->GetProperty("leveldb.stats", &stats));
  const size_t at = stats.find(" " + name + ": ");
  CHECK(at != std::string::npos);
  return std::stoull(stats.substr(at + name.size() + 3));
}

// Numbers in words of digits, the largest first.
struct Descending : Comparator {
  int Compare(const Slice& a, const Slice& b) const override {
    const long left = std::strtol(a.ToString().c_str(), nullptr, 10);
    const long right = std::strtol(b.ToString().c_str(), nullptr, 10);
    // Numbers far from zero, the smallest there is among them.
    return left > right ? INT32_MIN : left < right ? INT32_MAX : 0;
  }
  const char* Name() const override { return "test.Descending"; }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_TESTS_STORES_H_
