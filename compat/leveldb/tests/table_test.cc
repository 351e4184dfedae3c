// TableBuilder and Table: files in LevelDB's format, of keys in any order that a comparator gives.

#include <map>
#include <memory>
#include <random>

#include "harness.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/dumpfile.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/helpers/memenv.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/table.h"
#include "leveldb/table_builder.h"

namespace leveldb {

// The class that Table lets look up single keys.
class TableCache {
 public:
  static Status Get(Table* table, const Slice& key, std::string* found) {
    const auto note = [](void* text, const Slice& k, const Slice& v) {
      *static_cast<std::string*>(text) = k.ToString() + "=" + v.ToString();
    };
    return table->InternalGet(ReadOptions(), key, found, note);
  }
};

}  // namespace leveldb

using namespace leveldb;

namespace {

using Entries = std::map<std::string, std::string>;

// A file of an environment in memory, and the table in it.
class TableFile {
 public:
  explicit TableFile(const Entries& entries, const Options& given = Options()) : options_(given) {
    WritableFile* opened = nullptr;
    CHECK_OK(env_->NewWritableFile("/table", &opened));
    const std::unique_ptr<WritableFile> file(opened);
    TableBuilder builder(options_, file.get());
    for (const auto& [key, value] : entries) builder.Add(key, value);
    CHECK_OK(builder.status());
    CHECK_OK(builder.Finish());
    CHECK_OK(file->Close());
    CHECK_EQ(builder.NumEntries(), entries.size());
    CHECK_OK(env_->GetFileSize("/table", &size_));
    CHECK_EQ(builder.FileSize(), size_);
  }

  Table* Open() {
    RandomAccessFile* opened = nullptr;
    CHECK_OK(env_->NewRandomAccessFile("/table", &opened));
    file_.reset(opened);
    Table* table = nullptr;
    CHECK_OK(Table::Open(options_, file_.get(), size_, &table));
    table_.reset(table);
    return table;
  }

  uint64_t size() const { return size_; }

 private:
  const Options options_;
  const std::unique_ptr<Env> env_{NewMemEnv(Env::Default())};
  uint64_t size_ = 0;
  std::unique_ptr<RandomAccessFile> file_;
  std::unique_ptr<Table> table_;
};

Entries Many(int count, size_t value_len) {
  Entries entries;
  for (int i = 0; i < count; ++i) {
    entries["key" + std::to_string(i * 7919 % 100003)] = std::string(value_len, static_cast<char>('a' + i % 26));
  }
  return entries;
}

void CheckContents(Table* table, const Entries& entries) {
  const std::unique_ptr<Iterator> iterator(table->NewIterator(ReadOptions()));
  CHECK(!iterator->Valid());
  auto at = entries.begin();
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++at) {
    CHECK(at != entries.end());
    CHECK_EQ(iterator->key().ToString(), at->first);
    CHECK_EQ(iterator->value().ToString(), at->second);
  }
  CHECK(at == entries.end());
  auto back = entries.rbegin();
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev(), ++back) {
    CHECK(back != entries.rend());
    CHECK_EQ(iterator->key().ToString(), back->first);
  }
  CHECK(back == entries.rend());
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const std::string target = i == 0 ? "" : i == 1 ? "zzz" : "key" + std::to_string(random() % 100003);
    iterator->Seek(target);
    auto expected = entries.lower_bound(target);
    for (int step = 0; step < 5; ++step) {
      CHECK_EQ(iterator->Valid(), expected != entries.end());
      if (!iterator->Valid()) break;
      CHECK_EQ(iterator->key().ToString(), expected->first);
      // Back and forth again, over the edges of blocks too.
      if (expected != entries.begin()) {
        iterator->Prev();
        CHECK_EQ(iterator->key().ToString(), std::prev(expected)->first);
        iterator->Next();
        CHECK_EQ(iterator->key().ToString(), expected->first);
      }
      iterator->Next();
      ++expected;
    }
  }
  CHECK_OK(iterator->status());
}

}  // namespace

TEST(tables_hold_what_was_added) {
  const std::unique_ptr<const FilterPolicy> bloom(NewBloomFilterPolicy(10));
  const std::unique_ptr<Cache> cache(NewLRUCache(100000));
  for (const int count : {0, 1, 15, 16, 17, 3000}) {
    for (const size_t value_len : {0u, 10u, 300u}) {
      for (int variant = 0; variant < 4; ++variant) {
        Options options;
        options.compression = variant % 2 == 0 ? kNoCompression : kSnappyCompression;
        options.block_restart_interval = variant == 3 ? 1 : 16;
        options.block_size = variant == 2 ? 256 : 4096;
        options.filter_policy = variant >= 2 ? bloom.get() : nullptr;
        options.block_cache = variant == 1 ? cache.get() : nullptr;
        const Entries entries = Many(IsSmall() ? count / 10 : count, value_len);
        TableFile file(entries, options);
        CheckContents(file.Open(), entries);
      }
    }
  }
  CHECK(cache->TotalCharge() > 0);
}

namespace {

// Rules out all keys that have an x.
struct NoX : FilterPolicy {
  const char* Name() const override { return "test.NoX"; }
  void CreateFilter(const Slice*, int n, std::string* dst) const override { *dst += std::to_string(n) + ";"; }
  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    ++asked;
    CHECK(!filter.empty() && filter[filter.size() - 1] == ';');
    return key.ToString().find('x') == std::string::npos;
  }
  mutable int asked = 0;
};

}  // namespace

TEST(filters_rule_keys_out) {
  const NoX filter;
  Options options;
  options.filter_policy = &filter;
  options.block_size = 256;
  Entries entries = Many(300, 100);
  entries["kex"] = "there";
  TableFile file(entries, options);
  Table* table = file.Open();
  std::string found;
  CHECK_OK(TableCache::Get(table, "kex", &found));
  CHECK_EQ(found, "");
  CHECK_EQ(filter.asked, 1);
  const auto some = std::next(entries.begin(), 100);
  CHECK_OK(TableCache::Get(table, some->first, &found));
  CHECK_EQ(found, some->first + "=" + some->second);
  // Of a key that is not there, the next one in its block.
  CHECK_OK(TableCache::Get(table, "a", &found));
  CHECK_EQ(found, entries.begin()->first + "=" + entries.begin()->second);
  found.clear();
  CHECK_OK(TableCache::Get(table, "z", &found));
  CHECK_EQ(found, "");
  CHECK_EQ(filter.asked, 3);
}

TEST(compressed_tables_are_smaller) {
  const Entries entries = Many(1000, 300);
  Options options;
  const TableFile packed(entries, options);
  options.compression = kNoCompression;
  const TableFile plain(entries, options);
  CHECK(packed.size() * 3 < plain.size());
}

TEST(offsets_grow_with_the_keys) {
  Options options;
  options.compression = kNoCompression;
  options.block_size = 1024;
  Entries entries;
  for (int i = 100; i < 200; ++i) entries["k" + std::to_string(i)] = std::string(1000, 'x');
  TableFile file(entries, options);
  Table* table = file.Open();
  CHECK_EQ(table->ApproximateOffsetOf("a"), 0u);
  CHECK_EQ(table->ApproximateOffsetOf("k100"), 0u);
  const uint64_t half = table->ApproximateOffsetOf("k150");
  CHECK(half > 45000 && half < 56000);
  const uint64_t end = table->ApproximateOffsetOf("z");
  CHECK(end > 99000 && end < file.size());
}

TEST(a_builder_tells_what_it_has) {
  const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
  WritableFile* opened = nullptr;
  CHECK_OK(env->NewWritableFile("/t", &opened));
  const std::unique_ptr<WritableFile> file(opened);
  Options options;
  TableBuilder builder(options, file.get());
  CHECK_EQ(builder.NumEntries(), 0u);
  CHECK_EQ(builder.FileSize(), 0u);
  builder.Add("a", "1");
  CHECK_EQ(builder.FileSize(), 0u);
  builder.Flush();
  const uint64_t one_block = builder.FileSize();
  CHECK(one_block > 0);
  builder.Flush();
  CHECK_EQ(builder.FileSize(), one_block);
  builder.Add("b", "2");
  CHECK_EQ(builder.NumEntries(), 2u);
  options.block_size = 10;
  options.compression = kNoCompression;
  CHECK_OK(builder.ChangeOptions(options));
  builder.Add("c", "3");
  CHECK(builder.FileSize() > one_block);
  struct Other : Comparator {
    int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }
    const char* Name() const override { return "other"; }
    void FindShortestSeparator(std::string*, const Slice&) const override {}
    void FindShortSuccessor(std::string*) const override {}
  } other;
  options.comparator = &other;
  CHECK(builder.ChangeOptions(options).IsInvalidArgument());
  CHECK_OK(builder.status());
  builder.Abandon();
}

TEST(a_builder_stops_at_the_first_error) {
  struct FullFile : WritableFile {
    Status Append(const Slice&) override { return Status::IOError("full"); }
    Status Close() override { return Status::OK(); }
    Status Flush() override { return Status::OK(); }
    Status Sync() override { return Status::OK(); }
  } file;
  TableBuilder builder(Options(), &file);
  builder.Add("a", "1");
  builder.Flush();
  CHECK(builder.status().IsIOError());
  builder.Add("b", "2");
  CHECK_EQ(builder.NumEntries(), 1u);
  CHECK(builder.Finish().IsIOError());
}

TEST(what_is_no_table_is_refused) {
  const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
  for (const std::string& bytes : {std::string(), std::string("short"), std::string(1000, 'x')}) {
    CHECK_OK(WriteStringToFile(env.get(), bytes, "/t"));
    RandomAccessFile* opened = nullptr;
    CHECK_OK(env->NewRandomAccessFile("/t", &opened));
    const std::unique_ptr<RandomAccessFile> file(opened);
    Table* table = reinterpret_cast<Table*>(1);
    CHECK(Table::Open(Options(), file.get(), bytes.size(), &table).IsCorruption());
    CHECK(table == nullptr);
  }
}

// Each byte in turn: what is read is what was written, or an error, when checksums are asked for.
TEST(damaged_tables_give_errors) {
  const Entries entries = Many(IsSmall() ? 20 : 200, 20);
  const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
  Options options;
  options.block_size = 512;
  options.paranoid_checks = true;
  {
    WritableFile* opened = nullptr;
    CHECK_OK(env->NewWritableFile("/t", &opened));
    const std::unique_ptr<WritableFile> file(opened);
    TableBuilder builder(options, file.get());
    for (const auto& [key, value] : entries) builder.Add(key, value);
    CHECK_OK(builder.Finish());
  }
  std::string whole;
  CHECK_OK(ReadFileToString(env.get(), "/t", &whole));
  size_t errors = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    CHECK_OK(WriteStringToFile(env.get(), bytes, "/damaged"));
    RandomAccessFile* opened = nullptr;
    CHECK_OK(env->NewRandomAccessFile("/damaged", &opened));
    const std::unique_ptr<RandomAccessFile> file(opened);
    Table* table = nullptr;
    const Status status = Table::Open(options, file.get(), bytes.size(), &table);
    if (!status.ok()) {
      ++errors;
      continue;
    }
    const std::unique_ptr<Table> owned(table);
    ReadOptions reading;
    reading.verify_checksums = true;
    const std::unique_ptr<Iterator> iterator(table->NewIterator(reading));
    size_t count = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++count) {
      const auto found = entries.find(iterator->key().ToString());
      CHECK(found != entries.end() && iterator->value() == Slice(found->second));
    }
    if (!iterator->status().ok()) {
      ++errors;
    } else {
      CHECK_EQ(count, entries.size());
    }
  }
  CHECK(errors > whole.size() / 2);
}

namespace {

// The checksum behind a block, of the bytes before it; bit by bit.
uint32_t StoredChecksum(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

// Blocks that are nonsense under a checksum that fits: an iterator over them ends, whatever it says.
TEST(nonsense_in_blocks_ends) {
  const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
  Options options;
  options.compression = kNoCompression;
  std::string whole;
  size_t block = 0;
  {
    WritableFile* opened = nullptr;
    CHECK_OK(env->NewWritableFile("/t", &opened));
    const std::unique_ptr<WritableFile> file(opened);
    TableBuilder builder(options, file.get());
    for (int i = 100; i < 140; ++i) builder.Add("key" + std::to_string(i), "value");
    builder.Flush();
    block = builder.FileSize() - 5;
    CHECK_OK(builder.Finish());
  }
  CHECK_OK(ReadFileToString(env.get(), "/t", &whole));
  std::mt19937 random(5);
  const int rounds = IsSmall() ? 200 : 5000;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = whole;
    // Lengths of entries, restarts and their number, anywhere.
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes; ++i) {
      const size_t at = round % 2 == 0 ? random() % block : block - 1 - random() % 20;
      const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff, static_cast<unsigned char>(random())};
      bytes[at] = static_cast<char>(values[random() % 6]);
    }
    const uint32_t checksum = StoredChecksum(bytes.substr(0, block + 1));
    bytes.replace(block + 1, 4, reinterpret_cast<const char*>(&checksum), 4);
    CHECK_OK(WriteStringToFile(env.get(), bytes, "/damaged"));
    RandomAccessFile* opened = nullptr;
    CHECK_OK(env->NewRandomAccessFile("/damaged", &opened));
    const std::unique_ptr<RandomAccessFile> file(opened);
    Table* table = nullptr;
    CHECK_OK(Table::Open(options, file.get(), bytes.size(), &table));
    const std::unique_ptr<Table> owned(table);
    const std::unique_ptr<Iterator> iterator(table->NewIterator(ReadOptions()));
    size_t count = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) CHECK(++count < block);
    count = 0;
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) CHECK(++count < block);
    iterator->Seek("key120");
    if (iterator->Valid()) iterator->Prev();
    if (iterator->Valid()) iterator->Next();
  }
}

TEST(files_that_nobody_knows_are_not_dumped) {
  const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
  WritableFile* opened = nullptr;
  CHECK_OK(env->NewWritableFile("/out", &opened));
  const std::unique_ptr<WritableFile> out(opened);
  CHECK_OK(WriteStringToFile(env.get(), "x", "/dir/notes"));
  CHECK(DumpFile(env.get(), "/dir/notes", out.get()).IsInvalidArgument());
  CHECK(!DumpFile(env.get(), "/dir/000005.ldb", out.get()).ok());
  CHECK(!DumpFile(env.get(), "/dir/000005.log", out.get()).ok());
}
