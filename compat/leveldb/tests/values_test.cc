// The classes that hold bytes: Slice, Status, WriteBatch; comparators, filters, caches; iterators over nothing.

#include <map>
#include <thread>

#include "harness.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/filter_policy.h"
#include "leveldb/iterator.h"
#include "leveldb/status.h"
#include "leveldb/write_batch.h"

using namespace leveldb;

TEST(statuses_have_kinds_and_texts) {
  CHECK_EQ(Status().ToString(), "OK");
  CHECK_EQ(Status::NotFound("a", "b").ToString(), "NotFound: a: b");
  CHECK_EQ(Status::Corruption("a").ToString(), "Corruption: a");
  CHECK_EQ(Status::NotSupported("a").ToString(), "Not implemented: a");
  CHECK_EQ(Status::InvalidArgument("", "b").ToString(), "Invalid argument: : b");
  CHECK_EQ(Status::IOError(Slice()).ToString(), "IO error: ");
  CHECK(Status::NotFound("").IsNotFound() && !Status::NotFound("").IsCorruption());
  CHECK(Status::NotSupported("").IsNotSupportedError());
}

TEST(statuses_are_copied_and_moved) {
  Status first = Status::IOError("disk", std::string(1000, 'x'));
  Status copy = first;
  const Status moved = std::move(first);
  CHECK_EQ(copy.ToString(), moved.ToString());
  copy = Status::OK();
  CHECK(copy.ok() && moved.IsIOError());
  copy = moved;
  copy = *&copy;
  CHECK_EQ(copy.ToString().size(), std::string("IO error: disk: ").size() + 1000);
}

namespace {

struct Recorder : WriteBatch::Handler {
  void Put(const Slice& key, const Slice& value) override { text += "+" + key.ToString() + "=" + value.ToString(); }
  void Delete(const Slice& key) override { text += "-" + key.ToString(); }
  std::string text;
};

std::string Contents(const WriteBatch& batch) {
  Recorder recorder;
  const Status status = batch.Iterate(&recorder);
  return status.ok() ? recorder.text : status.ToString();
}

}  // namespace

TEST(batches_are_iterated_in_order) {
  WriteBatch batch;
  CHECK_EQ(Contents(batch), "");
  batch.Put("a", "1");
  batch.Delete("b");
  batch.Put("", "");
  batch.Put(std::string(300, 'k'), Slice("\0\1", 2));
  const std::string expected = "+a=1-b+=+" + std::string(300, 'k') + "=" + std::string("\0\1", 2);
  CHECK_EQ(Contents(batch), expected);
  const WriteBatch copy = batch;
  batch.Clear();
  CHECK_EQ(Contents(batch), "");
  CHECK_EQ(Contents(copy), expected);
}

TEST(batches_are_appended_also_to_themselves) {
  WriteBatch one, two;
  one.Put("a", "1");
  two.Delete("b");
  one.Append(two);
  CHECK_EQ(Contents(one), "+a=1-b");
  one.Append(one);
  CHECK_EQ(Contents(one), "+a=1-b+a=1-b");
  two.Append(WriteBatch());
  CHECK_EQ(Contents(two), "-b");
}

TEST(a_batch_says_how_large_it_is) {
  WriteBatch batch;
  CHECK_EQ(batch.ApproximateSize(), 12u);
  batch.Put("key", "value");
  CHECK_EQ(batch.ApproximateSize(), 12u + 1 + 1 + 3 + 1 + 5);
  batch.Delete("key");
  CHECK_EQ(batch.ApproximateSize(), 12u + 11 + 5);
  batch.Put(std::string(128, 'x'), "");
  CHECK_EQ(batch.ApproximateSize(), 12u + 16 + 1 + 2 + 128 + 1);
}

// The bytes are part of the interface: programs copy the object, and some read it.
TEST(a_batch_is_the_bytes_of_leveldbs_log) {
  WriteBatch batch;
  batch.Put("k", "v");
  batch.Delete("d");
  const std::string& rep = reinterpret_cast<const std::string&>(batch);
  CHECK_EQ(rep, std::string("\0\0\0\0\0\0\0\0\2\0\0\0\1\1k\1v\0\1d", 20));
}

TEST(a_damaged_batch_is_an_error) {
  WriteBatch batch;
  batch.Put("key", "value");
  std::string& rep = reinterpret_cast<std::string&>(batch);
  const std::string whole = rep;
  for (size_t len = 0; len < whole.size(); ++len) {
    rep = whole.substr(0, len);
    Recorder recorder;
    CHECK(batch.Iterate(&recorder).IsCorruption());
  }
  rep = whole;
  rep[12] = 7;
  Recorder recorder;
  CHECK(batch.Iterate(&recorder).IsCorruption());
  rep = whole;
  rep[8] = 2;
  CHECK(batch.Iterate(&recorder).IsCorruption());
}

TEST(bytes_are_ordered_without_sign) {
  const Comparator* bytewise = BytewiseComparator();
  CHECK_EQ(std::string(bytewise->Name()), "leveldb.BytewiseComparator");
  CHECK(bytewise->Compare("a", "b") < 0 && bytewise->Compare("b", "a") > 0);
  CHECK(bytewise->Compare("a", "\xff") < 0);
  CHECK(bytewise->Compare("a", "ab") < 0 && bytewise->Compare("", "a") < 0);
  CHECK_EQ(bytewise->Compare("same", "same"), 0);
  CHECK(bytewise == BytewiseComparator());
}

TEST(separators_lie_between) {
  const auto separator = [](std::string start, const std::string& limit) {
    BytewiseComparator()->FindShortestSeparator(&start, limit);
    return start;
  };
  CHECK_EQ(separator("abcdef", "abzzzz"), "abd");
  CHECK_EQ(separator("abc", "abcd"), "abc");
  CHECK_EQ(separator("abcdef", "abd"), "abcdef");
  CHECK_EQ(separator("a\xff", "c"), "b");
  CHECK_EQ(separator("\xff\xff", "\xff\xff\xff"), "\xff\xff");
  CHECK_EQ(separator("", "x"), "");
  CHECK_EQ(separator("b", "a"), "b");
  const auto successor = [](std::string key) {
    BytewiseComparator()->FindShortSuccessor(&key);
    return key;
  };
  CHECK_EQ(successor("abc"), "b");
  CHECK_EQ(successor("\xff\xff" "a1"), "\xff\xff" "b");
  CHECK_EQ(successor("\xff\xff"), "\xff\xff");
  CHECK_EQ(successor(""), "");
}

TEST(bloom_filters_have_leveldbs_bytes) {
  const FilterPolicy* bloom = NewBloomFilterPolicy(10);
  CHECK_EQ(std::string(bloom->Name()), "leveldb.BuiltinBloomFilter2");
  const Slice keys[] = {"hello", "world", "", Slice("\xff\xfe\x80", 3)};
  std::string filter = "before";
  bloom->CreateFilter(keys, 4, &filter);
  std::string hex;
  for (const char byte : filter.substr(6)) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(byte));
    hex += digits;
  }
  CHECK_EQ(hex, "194014414610519006");
  for (const Slice& key : keys) CHECK(bloom->KeyMayMatch(key, filter.substr(6)));
  CHECK(!bloom->KeyMayMatch("x", filter.substr(6)));
  CHECK(!bloom->KeyMayMatch("foo", filter.substr(6)));
  CHECK(!bloom->KeyMayMatch("hello", ""));
  // More probes than any filter has: an encoding to come, which rules nothing out.
  CHECK(bloom->KeyMayMatch("x", Slice("\0\0\0\0\37", 5)) && !bloom->KeyMayMatch("x", Slice("\0\0\0\0\36", 5)));
  delete bloom;
}

TEST(bloom_filters_miss_nothing_and_seldom_lie) {
  const FilterPolicy* bloom = NewBloomFilterPolicy(10);
  for (const int count : {1, 10, 1000, 10000}) {
    std::vector<std::string> texts;
    for (int i = 0; i < count; ++i) texts.push_back("key" + std::to_string(i));
    const std::vector<Slice> keys(texts.begin(), texts.end());
    std::string filter;
    bloom->CreateFilter(keys.data(), count, &filter);
    CHECK(filter.size() <= static_cast<size_t>(count) * 10 / 8 + 40);
    for (const Slice& key : keys) CHECK(bloom->KeyMayMatch(key, filter));
    int wrong = 0;
    for (int i = 0; i < 10000; ++i) wrong += bloom->KeyMayMatch("other" + std::to_string(i), filter);
    CHECK(wrong < 200);
  }
  delete bloom;
}

namespace {

std::vector<std::string> deleted;

void Deleter(const Slice& key, void* value) {
  deleted.push_back(key.ToString() + "=" + std::to_string(reinterpret_cast<uintptr_t>(value)));
}

void Insert(Cache* cache, const std::string& key, uintptr_t value, size_t charge = 1) {
  cache->Release(cache->Insert(key, reinterpret_cast<void*>(value), charge, Deleter));
}

uintptr_t Look(Cache* cache, const std::string& key) {
  Cache::Handle* handle = cache->Lookup(key);
  if (handle == nullptr) return 0;
  const auto value = reinterpret_cast<uintptr_t>(cache->Value(handle));
  cache->Release(handle);
  return value;
}

}  // namespace

TEST(a_cache_finds_replaces_and_erases) {
  deleted.clear();
  Cache* cache = NewLRUCache(1000);
  CHECK_EQ(Look(cache, "a"), 0u);
  Insert(cache, "a", 1);
  Insert(cache, "b", 2);
  CHECK_EQ(Look(cache, "a"), 1u);
  Insert(cache, "a", 3);
  CHECK_EQ(Look(cache, "a"), 3u);
  CHECK_EQ(deleted.size(), 1u);
  CHECK_EQ(deleted[0], "a=1");
  CHECK_EQ(cache->TotalCharge(), 2u);
  cache->Erase("b");
  cache->Erase("b");
  CHECK_EQ(Look(cache, "b"), 0u);
  CHECK_EQ(deleted.size(), 2u);
  const uint64_t id = cache->NewId();
  CHECK(cache->NewId() != id);
  delete cache;
  CHECK_EQ(deleted.size(), 3u);
  CHECK_EQ(deleted[2], "a=3");
}

TEST(entries_of_a_cache_live_as_long_as_their_handles) {
  deleted.clear();
  Cache* cache = NewLRUCache(1000);
  Cache::Handle* first = cache->Insert("a", reinterpret_cast<void*>(1), 1, Deleter);
  Insert(cache, "a", 2);
  CHECK_EQ(deleted.size(), 0u);
  CHECK_EQ(reinterpret_cast<uintptr_t>(cache->Value(first)), 1u);
  Cache::Handle* second = cache->Lookup("a");
  cache->Erase("a");
  CHECK_EQ(deleted.size(), 0u);
  cache->Prune();
  CHECK_EQ(reinterpret_cast<uintptr_t>(cache->Value(second)), 2u);
  cache->Release(first);
  cache->Release(second);
  CHECK_EQ(deleted.size(), 2u);
  delete cache;
}

TEST(a_cache_evicts_what_was_not_used) {
  deleted.clear();
  Cache* cache = NewLRUCache(1000);
  Insert(cache, "used", 1);
  Insert(cache, "unused", 2);
  Cache::Handle* held = cache->Insert("held", reinterpret_cast<void*>(3), 1, Deleter);
  for (uintptr_t i = 0; i < 2000; ++i) {
    Insert(cache, "key" + std::to_string(i), 100 + i);
    CHECK_EQ(Look(cache, "used"), 1u);
  }
  CHECK_EQ(Look(cache, "unused"), 0u);
  CHECK_EQ(Look(cache, "held"), 3u);
  cache->Release(held);
  CHECK(cache->TotalCharge() <= 1100);
  cache->Prune();
  CHECK_EQ(cache->TotalCharge(), 0u);
  CHECK_EQ(deleted.size(), 2003u);
  delete cache;
}

TEST(a_cache_without_room_keeps_nothing) {
  deleted.clear();
  Cache* cache = NewLRUCache(0);
  Cache::Handle* handle = cache->Insert("a", reinterpret_cast<void*>(1), 1, Deleter);
  CHECK_EQ(Look(cache, "a"), 0u);
  CHECK_EQ(reinterpret_cast<uintptr_t>(cache->Value(handle)), 1u);
  cache->Release(handle);
  CHECK_EQ(deleted.size(), 1u);
  delete cache;
}

TEST(a_cache_is_shared_by_threads) {
  Cache* cache = NewLRUCache(64);
  const auto nothing = [](const Slice&, void*) {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([cache, nothing, t] {
      for (int i = 0; i < 5000; ++i) {
        const std::string key = std::to_string((i * 7 + t) % 100);
        Cache::Handle* handle = cache->Lookup(key);
        if (handle == nullptr) handle = cache->Insert(key, nullptr, 1, nothing);
        cache->Release(handle);
        if (i % 50 == 0) cache->Erase(key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(cache->TotalCharge() <= 80);
  delete cache;
}

TEST(iterators_over_nothing) {
  Iterator* empty = NewEmptyIterator();
  empty->SeekToFirst();
  empty->Seek("a");
  empty->SeekToLast();
  CHECK(!empty->Valid() && empty->status().ok());
  delete empty;
  Iterator* failed = NewErrorIterator(Status::Corruption("here"));
  failed->SeekToFirst();
  CHECK(!failed->Valid());
  CHECK_EQ(failed->status().ToString(), "Corruption: here");
  delete failed;
}

TEST(clean_ups_of_an_iterator_run_once) {
  std::string ran;
  const auto note = [](void* text, void* what) {
    *static_cast<std::string*>(text) += static_cast<const char*>(what);
  };
  char a[] = "a", b[] = "b", c[] = "c";
  Iterator* iterator = NewEmptyIterator();
  iterator->RegisterCleanup(note, &ran, a);
  iterator->RegisterCleanup(note, &ran, b);
  iterator->RegisterCleanup(note, &ran, c);
  CHECK_EQ(ran, "");
  delete iterator;
  CHECK_EQ(ran, "acb");
}

namespace {

// A DB of the user's own, over a map, which leaves Put and Delete to the base class.
struct MapDB : DB {
  Status Put(const WriteOptions& options, const Slice& key, const Slice& value) override {
    return DB::Put(options, key, value);
  }
  Status Delete(const WriteOptions& options, const Slice& key) override { return DB::Delete(options, key); }
  Status Write(const WriteOptions&, WriteBatch* updates) override {
    struct Handler : WriteBatch::Handler {
      void Put(const Slice& key, const Slice& value) override { (*map)[key.ToString()] = value.ToString(); }
      void Delete(const Slice& key) override { map->erase(key.ToString()); }
      std::map<std::string, std::string>* map;
    } handler;
    handler.map = &map;
    return updates->Iterate(&handler);
  }
  Status Get(const ReadOptions&, const Slice&, std::string*) override { return Status::NotSupported(""); }
  Iterator* NewIterator(const ReadOptions&) override { return NewEmptyIterator(); }
  const Snapshot* GetSnapshot() override { return nullptr; }
  void ReleaseSnapshot(const Snapshot*) override {}
  bool GetProperty(const Slice&, std::string*) override { return false; }
  void GetApproximateSizes(const Range*, int, uint64_t*) override {}
  void CompactRange(const Slice*, const Slice*) override {}
  std::map<std::string, std::string> map;
};

}  // namespace

TEST(a_db_of_the_users_own_may_leave_out_put_and_delete) {
  MapDB db;
  CHECK_OK(db.Put(WriteOptions(), "a", "1"));
  CHECK_OK(db.Put(WriteOptions(), "b", "2"));
  CHECK_OK(db.Delete(WriteOptions(), "a"));
  CHECK_EQ(db.map.size(), 1u);
  CHECK_EQ(db.map["b"], "2");
}
