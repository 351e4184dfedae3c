// Options: which are accepted, what they do, and what their objects may do.

#include <algorithm>
#include <cstdarg>
#include <stdexcept>

#include "differences.h"
#include "harness.h"
#include "leveldb/cache.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/write_batch.h"
#include "stores.h"

using namespace leveldb;

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
