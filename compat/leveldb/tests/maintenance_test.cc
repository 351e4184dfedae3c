// Opening, destroying and repairing stores; damage; compactions, properties and sizes.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "differences.h"
#include "harness.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/write_batch.h"
#include "stores.h"

using namespace leveldb;

TEST(a_store_is_made_when_asked_for) {
  const Dir dir;
  const Status missing = TryOpen(dir / "db", Options());
  CHECK(missing.IsInvalidArgument());
  CHECK(missing.ToString().find(dir / "db") != std::string::npos);
  // Bindings pass the words on, and programs look for them.
  CHECK(missing.ToString().find("does not exist (create_if_missing is false)") != std::string::npos);
  CHECK_OK(TryOpen(dir / "db", Create()));
  CHECK_OK(TryOpen(dir / "db", Options()));
  Options options = Create();
  options.error_if_exists = true;
  const Status there = TryOpen(dir / "db", options);
  CHECK(there.IsInvalidArgument() && there.ToString().find("exists (error_if_exists is true)") != std::string::npos);
  CHECK_OK(TryOpen(dir / "other", options));
}

// Root may write anywhere.
TEST(a_directory_that_cannot_be_written_is_an_error_of_the_system) {
  const Dir dir;
  const std::string empty = dir / "empty";
  CHECK(mkdir(empty.c_str(), 0500) == 0);
  const Status status = TryOpen(empty, Options());
  CHECK(geteuid() == 0 ? status.IsInvalidArgument() : status.IsIOError());
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
  const Status kept = DestroyDB(dir / "db", Options());
  // Bindings pass the words on, and programs look for them.
  const std::string words = "IO error: lock " + (dir / "db/LOCK") + ": already held by process";
  for (const Status& status : {locked, kept}) CHECK(status.IsIOError() && status.ToString().find(words) == 0);
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

// The write buffer decides when LevelDB has the first of them in a table; a program that has written less than it did not
// count on anything, one that has written more did.
TEST(what_was_just_written_has_a_size) {
  const Dir dir;
  Options options = Create();
  options.compression = kNoCompression;
  options.write_buffer_size = 64 << 10;
  const auto db = Open(dir / "db", options);
  for (int i = 0; i < 2000; ++i) Put(db.get(), Number(i), std::string(1000, 'v'));
  const std::string start = Number(0), middle = Number(1000);
  const Range ranges[] = {{start, middle}, {middle, "9"}};
  uint64_t sizes[2];
  db->GetApproximateSizes(ranges, 2, sizes);
  for (const uint64_t size : sizes) CHECK(size > 500000 && size < 2000000);
  Put(db.get(), "x", std::string(1000, 'v'));
  const Range last = {"x", "y"};
  db->GetApproximateSizes(&last, 1, sizes);
  CHECK(!SizesHoldWhatIsInMemory() || (sizes[0] > 500 && sizes[0] < 2000));
}

// What stops them fails in the background; the log had it when the store was closed.
TEST(a_stop_of_writes_is_logged_by_the_next_one) {
  if (!StopsWhenMoved()) return;
  struct Lines : Logger {
    void Logv(const char* format, std::va_list arguments) override {
      char line[1000];
      std::vsnprintf(line, sizeof(line), format, arguments);
      text += std::string(line) + "\n";
    }
    std::string text;
  } logger;
  const Dir dir;
  Options options = Create();
  options.info_log = &logger;
  options.write_buffer_size = 64 << 10;
  const auto db = Open(dir / "db", options);
  Put(db.get(), "a", "1");
  CHECK_OK(Env::Default()->RenameFile(dir / "db", dir / "moved"));
  logger.text.clear();
  // The store finds it when it next writes into tables.
  Status stopped;
  const auto is_stopped = [&stopped] { return stopped.ToString().find("writes are stopped") != std::string::npos; };
  for (int i = 0; i < 20000 && !is_stopped(); ++i) {
    if (!stopped.ok()) Env::Default()->SleepForMicroseconds(1000);
    stopped = db->Put(WriteOptions(), Number(i), std::string(1000, 'v'));
  }
  CHECK(stopped.IsIOError() && is_stopped());
  CHECK(db->Delete(WriteOptions(), "a").IsIOError());
  CHECK_EQ(logger.text, dir / "db" + ": write: " + stopped.ToString() + "\n");
  CHECK_EQ(Get(db.get(), "a"), "1");
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

// A directory without a store too; one that is not to be listed counts as none.
TEST(destroying_leaves_no_empty_directory) {
  const Dir dir;
  CHECK_OK(Env::Default()->CreateDir(dir / "empty"));
  CHECK_OK(DestroyDB(dir / "empty", Options()));
  CHECK(!Env::Default()->FileExists(dir / "empty"));
  CHECK_OK(WriteStringToFile(Env::Default(), "mine", dir / "file"));
  CHECK_OK(DestroyDB(dir / "file", Options()));
  CHECK_OK(DestroyDB(dir / "file/db", Options()));
  CHECK(Env::Default()->FileExists(dir / "file"));
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
