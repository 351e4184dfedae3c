// DB, Snapshot and iterators over a store: what LevelDB promises of them.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "differences.h"
#include "harness.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/write_batch.h"

using namespace leveldb;

namespace {

Options Create() {
  Options options;
  options.create_if_missing = true;
  return options;
}

std::unique_ptr<DB> Open(const std::string& name, const Options& options = Create()) {
  DB* db = nullptr;
  CHECK_OK(DB::Open(options, name, &db));
  CHECK(db != nullptr);
  return std::unique_ptr<DB>(db);
}

Status TryOpen(const std::string& name, const Options& options) {
  DB* db = reinterpret_cast<DB*>(1);
  const Status status = DB::Open(options, name, &db);
  if (!status.ok()) CHECK(db == nullptr);
  if (status.ok()) delete db;
  return status;
}

std::string Get(DB* db, const Slice& key, const Snapshot* snapshot = nullptr) {
  ReadOptions options;
  options.snapshot = snapshot;
  std::string value;
  const Status status = db->Get(options, key, &value);
  if (status.IsNotFound()) return "NOT_FOUND";
  return status.ok() ? value : status.ToString();
}

void Put(DB* db, const Slice& key, const Slice& value) { CHECK_OK(db->Put(WriteOptions(), key, value)); }
void Delete(DB* db, const Slice& key) { CHECK_OK(db->Delete(WriteOptions(), key)); }

std::string Contents(DB* db, const Snapshot* snapshot = nullptr) {
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

std::string Number(int i) {
  char text[16];
  std::snprintf(text, sizeof(text), "%08d", i);
  return text;
}

}  // namespace

TEST(puts_gets_and_deletes) {
  const Dir dir;
  const auto db = Open(dir / "db");
  CHECK_EQ(Get(db.get(), "a"), "NOT_FOUND");
  Put(db.get(), "a", "1");
  Put(db.get(), "b", "2");
  Put(db.get(), "a", "3");
  CHECK_EQ(Get(db.get(), "a"), "3");
  Delete(db.get(), "b");
  Delete(db.get(), "never there");
  CHECK_EQ(Get(db.get(), "b"), "NOT_FOUND");
  CHECK_EQ(Contents(db.get()), "(a=3)");
}

TEST(keys_and_values_are_any_bytes) {
  const Dir dir;
  const auto db = Open(dir / "db");
  Put(db.get(), "", "empty");
  Put(db.get(), Slice("\0", 1), Slice("\0\xff", 2));
  Put(db.get(), "none", "");
  Put(db.get(), Slice(nullptr, 0), Slice(nullptr, 0));
  CHECK_EQ(Get(db.get(), ""), "");
  CHECK_EQ(Get(db.get(), Slice("\0", 1)), std::string("\0\xff", 2));
  CHECK_EQ(Get(db.get(), "none"), "");
  CHECK_EQ(Contents(db.get()), "(=)(" + std::string(1, '\0') + "=" + std::string("\0\xff", 2) + ")(none=)");
}

TEST(a_value_that_is_not_there_leaves_the_string) {
  const Dir dir;
  const auto db = Open(dir / "db");
  std::string value = "before";
  const Status status = db->Get(ReadOptions(), "a", &value);
  CHECK(status.IsNotFound());
  CHECK_EQ(status.ToString(), "NotFound: ");
  CHECK_EQ(value, "before");
}

TEST(large_values_come_back) {
  const Dir dir;
  const auto db = Open(dir / "db");
  for (const size_t len : {1000u, 4096u, 70000u, 3000000u}) {
    std::string value(len, 'x');
    for (size_t i = 0; i < len; i += 7) value[i] = static_cast<char>(i);
    Put(db.get(), "key", value);
    CHECK(Get(db.get(), "key") == value);
    db->CompactRange(nullptr, nullptr);
    CHECK(Get(db.get(), "key") == value);
  }
}

TEST(keys_have_a_limit_where_there_is_one) {
  const Dir dir;
  const auto db = Open(dir / "db");
  const std::string longest(kKeyLimit, 'k'), longer(kKeyLimit + 1, 'k');
  Put(db.get(), longest, "there");
  CHECK_EQ(Get(db.get(), longest), "there");
  db->CompactRange(nullptr, nullptr);
  const Slice bound = longest;
  db->CompactRange(&bound, &bound);
  CHECK_EQ(Get(db.get(), longer), "NOT_FOUND");
  const std::unique_ptr<Iterator> iterator(db->NewIterator(ReadOptions()));
  iterator->Seek(longer);
  CHECK(!iterator->Valid());
  CHECK_OK(iterator->status());
  const Status status = db->Put(WriteOptions(), longer, "");
  WriteBatch batch;
  batch.Put("small", "1");
  batch.Put(longer, "");
  const Status batched = db->Write(WriteOptions(), &batch);
  CHECK_EQ(status.IsInvalidArgument(), HasKeyLimit());
  CHECK_EQ(batched.IsInvalidArgument(), HasKeyLimit());
  if (HasKeyLimit()) CHECK(status.ToString().find("65536") != std::string::npos && batched.ToString() == status.ToString());
  CHECK_EQ(Get(db.get(), "small"), HasKeyLimit() ? "NOT_FOUND" : "1");
}

TEST(batches_are_applied_in_order_and_stay_usable) {
  const Dir dir;
  const auto db = Open(dir / "db");
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", "1");
  batch.Delete("a");
  batch.Put("c", "1");
  batch.Put("b", "2");
  CHECK_OK(db->Write(WriteOptions(), &batch));
  CHECK_EQ(Contents(db.get()), "(b=2)(c=1)");
  Put(db.get(), "c", "other");
  CHECK_OK(db->Write(WriteOptions(), &batch));
  CHECK_EQ(Contents(db.get()), "(b=2)(c=1)");
  WriteBatch empty;
  CHECK_OK(db->Write(WriteOptions(), &empty));
  WriteOptions synced;
  synced.sync = true;
  CHECK_OK(db->Write(synced, &empty));
  CHECK_OK(db->Write(synced, &batch));
  CHECK_OK(db->Put(synced, "d", "4"));
  CHECK_OK(db->Delete(synced, "b"));
  CHECK_EQ(Contents(db.get()), "(c=1)(d=4)");
}

TEST(a_write_of_no_batch_empties_the_memory) {
  const Dir dir;
  const auto db = Open(dir / "db");
  Put(db.get(), "a", "1");
  CHECK_OK(db->Write(WriteOptions(), nullptr));
  CHECK_EQ(Contents(db.get()), "(a=1)");
}

TEST(batches_of_one_entry) {
  const Dir dir;
  const auto db = Open(dir / "db");
  WriteBatch put, erase;
  put.Put("a", "1");
  erase.Delete("a");
  CHECK_OK(db->Write(WriteOptions(), &put));
  CHECK_EQ(Contents(db.get()), "(a=1)");
  CHECK_OK(db->Write(WriteOptions(), &erase));
  CHECK_EQ(Contents(db.get()), "");
  // One entry and the beginning of another: nothing of it is written.
  for (const size_t len : {0u, 8u, 11u, 12u, 14u, 16u, 18u}) {
    WriteBatch damaged;
    damaged.Put("b", "1");
    damaged.Put("c", "1");
    std::string& bytes = reinterpret_cast<std::string&>(damaged);
    bytes[8] = 1;
    bytes.resize(len);
    if (len >= 12 || ChecksWholeBatches()) CHECK(db->Write(WriteOptions(), &damaged).IsCorruption());
  }
  if (ChecksWholeBatches()) CHECK_EQ(Contents(db.get()), "");
}

TEST(a_damaged_batch_is_not_written) {
  const Dir dir;
  const auto db = Open(dir / "db");
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", "2");
  reinterpret_cast<std::string&>(batch).pop_back();
  const Status status = db->Write(WriteOptions(), &batch);
  CHECK(status.IsCorruption());
}

TEST(options_are_accepted) {
  const Dir dir;
  Options options = Create();
  const std::unique_ptr<Cache> cache(NewLRUCache(1 << 20));
  const std::unique_ptr<const FilterPolicy> filter(NewBloomFilterPolicy(10));
  options.block_cache = cache.get();
  options.filter_policy = filter.get();
  options.write_buffer_size = 100000;
  options.max_open_files = 100;
  options.block_restart_interval = 4;
  options.max_file_size = 1 << 20;
  options.reuse_logs = true;
  options.paranoid_checks = true;
  for (const size_t block_size : {1000u, 4096u, 5000u, 1u << 20}) {
    options.block_size = block_size;
    for (const CompressionType compression : {kNoCompression, kSnappyCompression}) {
      options.compression = compression;
      const auto db = Open(dir / "db", options);
      for (int i = 0; i < 100; ++i) Put(db.get(), Number(i), std::string(1000, 'v'));
      db->CompactRange(nullptr, nullptr);
      ReadOptions reading;
      reading.verify_checksums = true;
      reading.fill_cache = false;
      std::string value;
      CHECK_OK(db->Get(reading, Number(99), &value));
      CHECK_EQ(value, std::string(1000, 'v'));
    }
  }
}

namespace {

// A cache of the program's own, of which only the base class is LevelDB's.
struct OwnCache : Cache {
  Handle* Insert(const Slice& key, void* value, size_t charge, void (*deleter)(const Slice&, void*)) override {
    return rep->Insert(key, value, charge, deleter);
  }
  Handle* Lookup(const Slice& key) override { return rep->Lookup(key); }
  void Release(Handle* handle) override { rep->Release(handle); }
  void* Value(Handle* handle) override { return rep->Value(handle); }
  void Erase(const Slice& key) override { rep->Erase(key); }
  uint64_t NewId() override { return rep->NewId(); }
  size_t TotalCharge() const override { return rep->TotalCharge(); }
  const std::unique_ptr<Cache> rep{NewLRUCache(1000)};
};

}  // namespace

TEST(caches_of_any_size_and_kind_are_accepted) {
  const Dir dir;
  Options options = Create();
  OwnCache own;
  own.Prune();
  const std::unique_ptr<Cache> none(NewLRUCache(0)), endless(NewLRUCache(SIZE_MAX));
  for (Cache* cache : {none.get(), endless.get(), static_cast<Cache*>(&own)}) {
    options.block_cache = cache;
    for (const size_t buffer : {size_t{0}, size_t{4096}, SIZE_MAX}) {
      options.write_buffer_size = buffer;
      const auto db = Open(dir / "db", options);
      Put(db.get(), "a", "1");
      db->CompactRange(nullptr, nullptr);
      CHECK_EQ(Get(db.get(), "a"), "1");
    }
  }
}

TEST(a_logger_that_throws_is_no_matter) {
  struct Throwing : Logger {
    void Logv(const char*, std::va_list) override {
      if (OnEsker()) throw std::runtime_error("no line");
    }
  } logger;
  const Dir dir;
  Options options = Create();
  options.info_log = &logger;
  const auto db = Open(dir / "db", options);
  CHECK(!TryOpen(dir / "db", options).ok());
  Put(db.get(), "a", "1");
}

TEST(a_store_is_made_when_asked_for) {
  const Dir dir;
  const Status missing = TryOpen(dir / "db", Options());
  CHECK(missing.IsInvalidArgument());
  CHECK(missing.ToString().find(dir / "db") != std::string::npos);
  CHECK(missing.ToString().find("create_if_missing") != std::string::npos);
  CHECK_OK(TryOpen(dir / "db", Create()));
  CHECK_OK(TryOpen(dir / "db", Options()));
  Options options = Create();
  options.error_if_exists = true;
  CHECK(TryOpen(dir / "db", options).IsInvalidArgument());
  CHECK_OK(TryOpen(dir / "other", options));
}

TEST(the_directory_above_is_made_or_missed) {
  const Dir dir;
  const Status status = TryOpen(dir / "no/such/db", Create());
  CHECK_EQ(status.ok(), MakesParents());
}

TEST(a_store_is_open_once) {
  const Dir dir;
  const auto db = Open(dir / "db");
  const Status locked = TryOpen(dir / "db", Options());
  CHECK(locked.IsIOError() && locked.ToString().find("LOCK") != std::string::npos);
  CHECK(DestroyDB(dir / "db", Options()).IsIOError());
  Put(db.get(), "a", "1");
  CHECK_EQ(Contents(db.get()), "(a=1)");
}

TEST(what_was_written_is_there_after_a_reopen) {
  const Dir dir;
  std::map<std::string, std::string> expected;
  for (int round = 0; round < 4; ++round) {
    const auto db = Open(dir / "db");
    for (int i = 0; i < 3000; i += 1 + round) {
      const std::string key = Number(i);
      if ((i + round) % 5 == 0) {
        Delete(db.get(), key);
        expected.erase(key);
      } else {
        const std::string value = "value " + std::to_string(i * round);
        Put(db.get(), key, value);
        expected[key] = value;
      }
    }
    if (round == 1) db->CompactRange(nullptr, nullptr);
    std::string text;
    for (const auto& [key, value] : expected) text += "(" + key + "=" + value + ")";
    CHECK(Contents(db.get()) == text);
  }
  const auto db = Open(dir / "db");
  for (const auto& [key, value] : expected) CHECK_EQ(Get(db.get(), key), value);
}

TEST(iterators_go_both_ways_and_turn) {
  const Dir dir;
  const auto db = Open(dir / "db");
  for (const char* key : {"b", "d", "f"}) Put(db.get(), key, std::string(key) + "!");
  const std::unique_ptr<Iterator> iterator(db->NewIterator(ReadOptions()));
  const auto at = [&iterator] {
    CHECK_OK(iterator->status());
    return iterator->Valid() ? iterator->key().ToString() + iterator->value().ToString() : "end";
  };
  CHECK_EQ(at(), "end");
  iterator->SeekToFirst();
  CHECK_EQ(at(), "bb!");
  iterator->Next();
  CHECK_EQ(at(), "dd!");
  iterator->Prev();
  CHECK_EQ(at(), "bb!");
  iterator->Prev();
  CHECK_EQ(at(), "end");
  iterator->SeekToLast();
  CHECK_EQ(at(), "ff!");
  iterator->Prev();
  iterator->Next();
  CHECK_EQ(at(), "ff!");
  iterator->Next();
  CHECK_EQ(at(), "end");
  iterator->Seek("c");
  CHECK_EQ(at(), "dd!");
  iterator->Seek("d");
  CHECK_EQ(at(), "dd!");
  iterator->Prev();
  CHECK_EQ(at(), "bb!");
  iterator->Seek("");
  CHECK_EQ(at(), "bb!");
  iterator->Seek("g");
  CHECK_EQ(at(), "end");
  iterator->Seek(Slice(nullptr, 0));
  CHECK_EQ(at(), "bb!");
}

TEST(iterators_see_the_moment_they_were_made) {
  const Dir dir;
  const auto db = Open(dir / "db");
  Put(db.get(), "a", "1");
  Put(db.get(), "b", "1");
  const std::unique_ptr<Iterator> iterator(db->NewIterator(ReadOptions()));
  Put(db.get(), "a", "2");
  Delete(db.get(), "b");
  Put(db.get(), "c", "2");
  db->CompactRange(nullptr, nullptr);
  std::string text;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    text += iterator->key().ToString() + iterator->value().ToString();
  }
  CHECK_EQ(text, "a1b1");
  CHECK_EQ(Contents(db.get()), "(a=2)(c=2)");
}

TEST(snapshots_are_moments) {
  const Dir dir;
  const auto db = Open(dir / "db");
  const Snapshot* nothing = db->GetSnapshot();
  Put(db.get(), "a", "1");
  const Snapshot* one = db->GetSnapshot();
  Put(db.get(), "a", "2");
  Put(db.get(), "b", "2");
  const Snapshot* two = db->GetSnapshot();
  Delete(db.get(), "a");
  for (int round = 0; round < 2; ++round) {
    CHECK_EQ(Get(db.get(), "a", nothing), "NOT_FOUND");
    CHECK_EQ(Get(db.get(), "a", one), "1");
    CHECK_EQ(Get(db.get(), "a", two), "2");
    CHECK_EQ(Get(db.get(), "a"), "NOT_FOUND");
    CHECK_EQ(Contents(db.get(), nothing), "");
    CHECK_EQ(Contents(db.get(), one), "(a=1)");
    CHECK_EQ(Contents(db.get(), two), "(a=2)(b=2)");
    CHECK_EQ(Contents(db.get()), "(b=2)");
    db->CompactRange(nullptr, nullptr);
  }
  db->ReleaseSnapshot(one);
  db->CompactRange(nullptr, nullptr);
  CHECK_EQ(Contents(db.get(), two), "(a=2)(b=2)");
  db->ReleaseSnapshot(two);
  db->ReleaseSnapshot(nothing);
}

TEST(a_snapshot_of_another_db_is_told) {
  if (!KnowsForeignSnapshots()) return;
  const Dir dir;
  const auto one = Open(dir / "one");
  const auto two = Open(dir / "two");
  Put(one.get(), "a", "1");
  const Snapshot* snapshot = one->GetSnapshot();
  ReadOptions options;
  options.snapshot = snapshot;
  std::string value;
  CHECK(two->Get(options, "a", &value).IsInvalidArgument());
  const std::unique_ptr<Iterator> iterator(two->NewIterator(options));
  iterator->SeekToFirst();
  CHECK(!iterator->Valid() && iterator->status().IsInvalidArgument());
  one->ReleaseSnapshot(snapshot);
}

namespace {

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

struct OtherName : Descending {
  const char* Name() const override { return "test.Other"; }
};

}  // namespace

TEST(keys_are_in_the_order_of_the_programs_comparator) {
  const Dir dir;
  const Descending descending;
  Options options = Create();
  options.comparator = &descending;
  std::string expected;
  for (int i = 1999; i >= 0; --i) expected += "(" + std::to_string(i) + "=v)";
  {
    const auto db = Open(dir / "db", options);
    for (int i = 0; i < 2000; ++i) Put(db.get(), std::to_string(i * 7 % 2000), "v");
    CHECK(Contents(db.get()) == expected);
    const Slice from = "1500", to = "500";
    db->CompactRange(&from, &to);
    CHECK(Contents(db.get()) == expected);
    // The same number is the same key.
    CHECK_EQ(Get(db.get(), "0017"), "v");
    const std::unique_ptr<Iterator> iterator(db->NewIterator(ReadOptions()));
    iterator->Seek("5000");
    CHECK_EQ(iterator->key().ToString(), "1999");
  }
  const auto db = Open(dir / "db", options);
  CHECK(Contents(db.get()) == expected);
}

TEST(another_comparator_is_refused) {
  const Dir dir;
  const Descending descending;
  const OtherName other;
  Options options = Create();
  CHECK_OK(TryOpen(dir / "bytes", options));
  options.comparator = &descending;
  CHECK_OK(TryOpen(dir / "numbers", options));
  CHECK(TryOpen(dir / "bytes", options).IsInvalidArgument());
  options.comparator = &other;
  const Status mismatch = TryOpen(dir / "numbers", options);
  CHECK(mismatch.IsInvalidArgument());
  CHECK(mismatch.ToString().find("test.Descending") != std::string::npos);
  CHECK(mismatch.ToString().find("test.Other") != std::string::npos);
  CHECK(TryOpen(dir / "numbers", Options()).IsInvalidArgument());
  options.comparator = &descending;
  CHECK_OK(TryOpen(dir / "numbers", options));
}

namespace {

struct Throwing : Descending {
  int Compare(const Slice& a, const Slice& b) const override {
    if (throws) throw std::runtime_error("no order");
    return Descending::Compare(a, b);
  }
  std::atomic<bool> throws{false};
};

}  // namespace

TEST(a_comparator_that_throws_fails_the_call_alone) {
  if (!SurvivesThrowingComparator()) return;
  const Dir dir;
  Throwing comparator;
  Options options = Create();
  options.comparator = &comparator;
  const auto db = Open(dir / "db", options);
  Put(db.get(), "1", "one");
  Put(db.get(), "2", "two");
  comparator.throws = true;
  CHECK(!db->Put(WriteOptions(), "3", "three").ok());
  WriteBatch batch;
  batch.Put("4", "four");
  CHECK(!db->Write(WriteOptions(), &batch).ok());
  std::string value;
  const Status status = db->Get(ReadOptions(), "1", &value);
  CHECK(!status.ok() && !status.IsNotFound());
  const std::unique_ptr<Iterator> iterator(db->NewIterator(ReadOptions()));
  iterator->Seek("1");
  CHECK(!iterator->Valid() && iterator->status().ToString().find("comparator") != std::string::npos);
  comparator.throws = false;
  CHECK_EQ(Contents(db.get()), "(2=two)(1=one)");
  Put(db.get(), "3", "three");
  CHECK_EQ(Get(db.get(), "3"), "three");
}

TEST(compactions_of_ranges_change_nothing_that_is_read) {
  const Dir dir;
  const auto db = Open(dir / "db");
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 500; ++i) Put(db.get(), Number(i), std::to_string(round));
    const std::string from = Number(100), to = Number(200);
    const Slice begin = from, end = to;
    db->CompactRange(&begin, &end);
    db->CompactRange(nullptr, &begin);
    db->CompactRange(&end, nullptr);
    db->CompactRange(&end, &begin);
  }
  const std::unique_ptr<Iterator> iterator(db->NewIterator(ReadOptions()));
  int i = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++i) {
    CHECK_EQ(iterator->key().ToString(), Number(i));
    CHECK_EQ(iterator->value().ToString(), "2");
  }
  CHECK_EQ(i, 500);
}

TEST(properties_are_those_that_leveldb_has) {
  const Dir dir;
  const auto db = Open(dir / "db");
  for (int i = 0; i < 1000; ++i) Put(db.get(), Number(i), std::string(200, 'v'));
  db->CompactRange(nullptr, nullptr);
  const auto property = [&db](const std::string& name) {
    std::string value = "before";
    const bool known = db->GetProperty(name, &value);
    return known ? value : "unknown";
  };
  int files = 0;
  for (int level = 0; level < 7; ++level) {
    const std::string count = property("leveldb.num-files-at-level" + std::to_string(level));
    CHECK(!count.empty() && count.find_first_not_of("0123456789") == std::string::npos);
    files += std::stoi(count);
  }
  CHECK(files >= 1);
  for (const char* name : {"leveldb.num-files-at-level7", "leveldb.num-files-at-level", "leveldb.num-files-at-levelx",
                           "leveldb.num-files-at-level0x", "leveldb.", "leveldb.nonsense", "", "stats"}) {
    CHECK_EQ(property(name), "unknown");
  }
  CHECK(std::stoull(property("leveldb.approximate-memory-usage")) > 0);
  const std::string stats = property("leveldb.stats");
  CHECK(stats.find("Level  Files") != std::string::npos && std::count(stats.begin(), stats.end(), '\n') >= 3);
  const std::string tables = property("leveldb.sstables");
  CHECK(tables.find("--- level 0 ---\n") != std::string::npos);
  CHECK(tables.find("--- level 6 ---\n") != std::string::npos);
}

namespace {

// A number of Esker's statistics.
uint64_t Statistic(DB* db, const std::string& name) {
  std::string stats;
  CHECK(db->GetProperty("leveldb.stats", &stats));
  const size_t at = stats.find(" " + name + ": ");
  CHECK(at != std::string::npos);
  return std::stoull(stats.substr(at + name.size() + 3));
}

}  // namespace

TEST(synced_writes_are_synced) {
  if (!HasEskerStats()) return;
  const Dir dir;
  const auto db = Open(dir / "db");
  WriteOptions synced;
  synced.sync = true;
  WriteBatch batch, empty;
  batch.Put("c", "3");
  const auto syncs = [&db] { return Statistic(db.get(), "log_syncs"); };
  uint64_t before = syncs();
  Put(db.get(), "a", "1");
  Delete(db.get(), "a");
  CHECK_OK(db->Write(WriteOptions(), &batch));
  CHECK_OK(db->Write(WriteOptions(), &empty));
  CHECK_EQ(syncs(), before);
  CHECK_OK(db->Put(synced, "a", "1"));
  CHECK_EQ(syncs(), before + 1);
  CHECK_OK(db->Delete(synced, "a"));
  CHECK_EQ(syncs(), before + 2);
  CHECK_OK(db->Write(synced, &batch));
  CHECK_EQ(syncs(), before + 3);
  Put(db.get(), "b", "2");
  CHECK_OK(db->Write(synced, &empty));
  CHECK_EQ(syncs(), before + 4);
}

TEST(buffer_and_cache_are_the_memory) {
  if (!HasEskerStats()) return;
  const Dir dir;
  const auto budget = [&dir](size_t buffer, Cache* cache) {
    Options options = Create();
    if (buffer != 0) options.write_buffer_size = buffer;
    options.block_cache = cache;
    return Statistic(Open(dir / "db", options).get(), "memory_budget");
  };
  constexpr uint64_t kMiB = 1 << 20;
  OwnCache own;
  const std::unique_ptr<Cache> none(NewLRUCache(0)), two(NewLRUCache(2 * kMiB)), endless(NewLRUCache(SIZE_MAX));
  CHECK_EQ(budget(0, nullptr), 128 * kMiB);
  CHECK_EQ(budget(kMiB, nullptr), 9 * kMiB);
  CHECK_EQ(budget(kMiB, two.get()), 3 * kMiB);
  CHECK_EQ(budget(0, two.get()), 6 * kMiB);
  CHECK_EQ(budget(1000, none.get()), kMiB);
  CHECK_EQ(budget(kMiB, &own), 9 * kMiB);
  CHECK_EQ(budget(0, endless.get()), kMiB * kMiB);
  CHECK_EQ(budget(SIZE_MAX, two.get()), 1026 * kMiB);
}

TEST(a_range_of_one_key_is_compacted) {
  const Descending descending;
  for (const bool own_order : {false, true}) {
    const Dir dir;
    Options options = Create();
    if (own_order) options.comparator = &descending;
    const auto db = Open(dir / "db", options);
    // In tables of their own, so that nothing but the range names them.
    for (const char* value : {"old", "new"}) {
      Put(db.get(), "5", value);
      const Slice key = "5";
      db->CompactRange(&key, &key);
    }
    Delete(db.get(), "5");
    const Slice key = "5";
    db->CompactRange(&key, &key);
    int files = 0;
    for (int level = 0; level < 7; ++level) {
      std::string count;
      CHECK(db->GetProperty("leveldb.num-files-at-level" + std::to_string(level), &count));
      files += std::stoi(count);
    }
    CHECK_EQ(Get(db.get(), "5"), "NOT_FOUND");
    if (HasEskerStats()) CHECK_EQ(files, 0);
  }
}

TEST(sizes_are_about_those_of_the_files) {
  const Dir dir;
  Options options = Create();
  options.compression = kNoCompression;
  const auto db = Open(dir / "db", options);
  for (int i = 0; i < 2000; ++i) Put(db.get(), Number(i), std::string(1000, static_cast<char>('a' + i % 26)));
  db->CompactRange(nullptr, nullptr);
  const std::string start = Number(0), middle = Number(1000);
  const Range ranges[] = {{start, middle}, {start, "9"}, {"x", "y"}, {middle, start}};
  uint64_t sizes[4];
  db->GetApproximateSizes(ranges, 4, sizes);
  CHECK(sizes[0] > 700000 && sizes[0] < 1300000);
  CHECK(sizes[1] > 1700000 && sizes[1] < 2600000);
  CHECK_EQ(sizes[2], 0u);
  CHECK_EQ(sizes[3], 0u);
  db->GetApproximateSizes(ranges, 0, nullptr);
}

TEST(a_destroyed_store_is_gone) {
  const Dir dir;
  CHECK_OK(DestroyDB(dir / "db", Options()));
  {
    const auto db = Open(dir / "db");
    Put(db.get(), "a", "1");
    db->CompactRange(nullptr, nullptr);
    Put(db.get(), "b", "2");
  }
  CHECK_OK(DestroyDB(dir / "db", Options()));
  CHECK(!Env::Default()->FileExists(dir / "db"));
  CHECK_OK(DestroyDB(dir / "db", Options()));
  const auto db = Open(dir / "db");
  CHECK_EQ(Contents(db.get()), "");
}

TEST(destroying_leaves_files_of_others) {
  const Dir dir;
  Open(dir / "db");
  CHECK_OK(WriteStringToFile(Env::Default(), "mine", dir / "db/notes.txt"));
  CHECK_OK(DestroyDB(dir / "db", Options()));
  std::string text;
  CHECK_OK(ReadFileToString(Env::Default(), dir / "db/notes.txt", &text));
  CHECK_EQ(text, "mine");
  CHECK_OK(DestroyDB(dir / "db", Options()));
}

TEST(a_repaired_store_has_its_entries) {
  const Dir dir;
  CHECK_EQ(RepairDB(dir / "missing", Options()).IsIOError(), RefusesToRepairNothing());
  {
    const auto db = Open(dir / "db");
    for (int i = 0; i < 1000; ++i) Put(db.get(), Number(i), "v");
    db->CompactRange(nullptr, nullptr);
    Put(db.get(), "last", "w");
  }
  CHECK_OK(Env::Default()->RemoveFile(dir / "db/CURRENT"));
  CHECK(!TryOpen(dir / "db", Options()).ok());
  CHECK_OK(RepairDB(dir / "db", Options()));
  const auto db = Open(dir / "db");
  for (int i = 0; i < 1000; ++i) CHECK_EQ(Get(db.get(), Number(i)), "v");
  CHECK_EQ(Get(db.get(), "last"), "w");
}

TEST(damage_is_corruption_never_another_value) {
  const Dir dir;
  const std::string value(100, 'v');
  {
    const auto db = Open(dir / "db");
    for (int i = 0; i < 5000; ++i) Put(db.get(), Number(i), value);
    db->CompactRange(nullptr, nullptr);
  }
  std::vector<std::string> names;
  CHECK_OK(Env::Default()->GetChildren(dir / "db", &names));
  int damaged = 0;
  for (const std::string& name : names) {
    const std::string suffix = DataSuffix();
    if (name.size() < suffix.size() || name.substr(name.size() - suffix.size()) != suffix) continue;
    std::string bytes;
    CHECK_OK(ReadFileToString(Env::Default(), dir / ("db/" + name), &bytes));
    for (size_t at = bytes.size() / 3; at < bytes.size() / 3 + 50; ++at) bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
    CHECK_OK(WriteStringToFile(Env::Default(), bytes, dir / ("db/" + name)));
    ++damaged;
  }
  CHECK(damaged > 0);
  Options paranoid;
  paranoid.paranoid_checks = true;
  if (ParanoidOpenReadsAll()) CHECK(TryOpen(dir / "db", paranoid).IsCorruption());
  const auto db = Open(dir / "db");
  ReadOptions options;
  options.verify_checksums = true;
  int corrupt = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string read;
    const Status status = db->Get(options, Number(i), &read);
    CHECK(status.ok() ? read == value : status.IsCorruption());
    corrupt += status.IsCorruption();
  }
  CHECK(corrupt > 0);
  const std::unique_ptr<Iterator> iterator(db->NewIterator(options));
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) CHECK(iterator->value() == value);
  CHECK(iterator->status().IsCorruption());
}

TEST(threads_write_and_read_one_db) {
  const Dir dir;
  const auto db = Open(dir / "db");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&db, &wrong, t] {
      const std::string own = std::to_string(t);
      for (int i = 0; i < (IsSmall() ? 50 : 500); ++i) {
        WriteBatch batch;
        batch.Put("a" + own, Number(i));
        batch.Put("b" + own, Number(i));
        wrong += !db->Write(WriteOptions(), &batch).ok();
        const Snapshot* snapshot = db->GetSnapshot();
        // Another thread's batch is there whole or not at all.
        const std::string other = std::to_string((t + 1) % 4);
        wrong += Get(db.get(), "a" + other, snapshot) != Get(db.get(), "b" + other, snapshot);
        db->ReleaseSnapshot(snapshot);
        wrong += Get(db.get(), "a" + own) != Number(i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
}

TEST(random_operations_are_those_of_a_map) {
  const Dir dir;
  Options options = Create();
  options.write_buffer_size = 64 << 10;
  std::mt19937 random(301);
  std::map<std::string, std::string> model;
  auto db = Open(dir / "db", options);
  const int steps = IsSmall() ? 1500 : 20000;
  for (int i = 0; i < steps; ++i) {
    const std::string key = "key" + std::to_string(random() % 500);
    const unsigned what = random() % 100;
    if (what < 50) {
      const std::string value(random() % 200, static_cast<char>('a' + random() % 26));
      Put(db.get(), key, value);
      model[key] = value;
    } else if (what < 70) {
      Delete(db.get(), key);
      model.erase(key);
    } else if (what < 75) {
      WriteBatch batch;
      for (int n = 0; n < 20; ++n) {
        const std::string other = "key" + std::to_string(random() % 500);
        batch.Put(other, key);
        model[other] = key;
      }
      CHECK_OK(db->Write(WriteOptions(), &batch));
    } else if (what < 98) {
      const auto found = model.find(key);
      CHECK_EQ(Get(db.get(), key), found == model.end() ? "NOT_FOUND" : found->second);
    } else if (what < 99) {
      const std::unique_ptr<Iterator> iterator(db->NewIterator(ReadOptions()));
      auto at = model.lower_bound(key);
      for (iterator->Seek(key); iterator->Valid(); iterator->Next(), ++at) {
        CHECK(at != model.end());
        CHECK_EQ(iterator->key().ToString(), at->first);
        CHECK_EQ(iterator->value().ToString(), at->second);
      }
      CHECK(at == model.end());
    } else if (random() % 20 == 0) {
      db.reset();
      db = Open(dir / "db", options);
    }
  }
  std::string text;
  for (const auto& [key, value] : model) text += "(" + key + "=" + value + ")";
  CHECK(Contents(db.get()) == text);
}
