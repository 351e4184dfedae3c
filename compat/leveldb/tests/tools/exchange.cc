// Writes files in LevelDB's format with the library that is loaded, and reads those that another one wrote: what one
// build of the library leaves is to be what the other reads, and the same bytes.
//
//   exchange write DIR     tables of many shapes
//   exchange read DIR      reads them
//   exchange store DIR     a store, used and closed; with LevelDB, its own files
//   exchange dump DIR OUT  what DumpFile says of each file in DIR
//   exchange damage DIR OUT  copies of the logs and manifests in DIR, each damaged in its own way
//   exchange refused DIR   DIR holds files of LevelDB; nothing of the library touches them

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/dumpfile.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/table.h"
#include "leveldb/table_builder.h"
#include "leveldb/write_batch.h"

using namespace leveldb;

namespace {

int failures = 0;

void Check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "exchange: %s\n", what.c_str());
  ++failures;
}

void CheckOk(const Status& status, const std::string& what) { Check(status.ok(), what + ": " + status.ToString()); }

// An order of keys in which bytes count from the end.
struct Backwards : Comparator {
  int Compare(const Slice& a, const Slice& b) const override { return Turned(a).compare(Turned(b)); }
  const char* Name() const override { return "exchange.Backwards"; }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
  static std::string Turned(const Slice& key) {
    std::string text = key.ToString();
    std::reverse(text.begin(), text.end());
    return text;
  }
};

struct Shape {
  std::string name;
  Options options;
  std::vector<std::pair<std::string, std::string>> entries;
};

// Keys of letters, or of any bytes; values that pack well, not at all, or are empty.
std::vector<Shape> Shapes() {
  static const Backwards backwards;
  static const FilterPolicy* const filters[] = {nullptr, NewBloomFilterPolicy(10), NewBloomFilterPolicy(3)};
  std::vector<Shape> shapes;
  std::mt19937 random(2011);
  for (const CompressionType compression : {kNoCompression, kSnappyCompression}) {
    for (int variant = 0; variant < 12; ++variant) {
      Shape shape;
      shape.name = "t" + std::to_string(compression) + "-" + std::to_string(variant) + ".ldb";
      shape.options.compression = compression;
      shape.options.block_size = variant % 2 == 0 ? 4096 : 300;
      shape.options.block_restart_interval = variant % 4 == 3 ? 3 : 16;
      shape.options.filter_policy = filters[variant % 3];
      if (variant >= 8) shape.options.comparator = &backwards;
      const int count = variant == 0 ? 0 : variant == 1 ? 1 : 2000;
      std::map<std::string, std::string> made;
      for (int i = 0; i < count; ++i) {
        std::string key;
        const size_t len = random() % 30;
        for (size_t at = 0; at < len; ++at) {
          key.push_back(static_cast<char>(variant % 5 == 0 ? random() : 'a' + random() % 3));
        }
        std::string value;
        const size_t value_len = random() % 50 == 0 ? 9000 : random() % 100;
        for (size_t at = 0; at < value_len; ++at) value.push_back(static_cast<char>(variant % 3 == 0 ? random() : 'v'));
        made[key] = value;
      }
      shape.entries.assign(made.begin(), made.end());
      const Comparator* order = shape.options.comparator;
      std::sort(shape.entries.begin(), shape.entries.end(),
                [order](const auto& a, const auto& b) { return order->Compare(a.first, b.first) < 0; });
      shapes.push_back(std::move(shape));
    }
  }
  return shapes;
}

void Write(const std::string& dir) {
  for (const Shape& shape : Shapes()) {
    WritableFile* opened = nullptr;
    CheckOk(Env::Default()->NewWritableFile(dir + "/" + shape.name, &opened), shape.name);
    const std::unique_ptr<WritableFile> file(opened);
    TableBuilder builder(shape.options, file.get());
    size_t at = 0;
    for (const auto& [key, value] : shape.entries) {
      builder.Add(key, value);
      if (++at % 700 == 0) builder.Flush();
    }
    CheckOk(builder.Finish(), shape.name);
    CheckOk(file->Close(), shape.name);
  }
}

void Read(const std::string& dir) {
  for (const Shape& shape : Shapes()) {
    const std::string path = dir + "/" + shape.name;
    uint64_t size = 0;
    RandomAccessFile* opened = nullptr;
    CheckOk(Env::Default()->GetFileSize(path, &size), path);
    CheckOk(Env::Default()->NewRandomAccessFile(path, &opened), path);
    const std::unique_ptr<RandomAccessFile> file(opened);
    Table* read = nullptr;
    CheckOk(Table::Open(shape.options, file.get(), size, &read), path);
    if (read == nullptr) continue;
    const std::unique_ptr<Table> table(read);
    ReadOptions options;
    options.verify_checksums = true;
    const std::unique_ptr<Iterator> iterator(table->NewIterator(options));
    size_t at = 0;
    for (iterator->SeekToFirst(); iterator->Valid() && at < shape.entries.size(); iterator->Next(), ++at) {
      Check(iterator->key() == Slice(shape.entries[at].first), path + ": another key");
      Check(iterator->value() == Slice(shape.entries[at].second), path + ": another value");
    }
    Check(at == shape.entries.size() && !iterator->Valid(), path + ": another number of entries");
    CheckOk(iterator->status(), path);
    for (size_t i = 0; i < shape.entries.size(); i += 37) {
      iterator->Seek(shape.entries[i].first);
      Check(iterator->Valid() && iterator->value() == Slice(shape.entries[i].second), path + ": not found");
    }
  }
}

void Store(const std::string& dir) {
  const std::unique_ptr<const FilterPolicy> bloom(NewBloomFilterPolicy(10));
  Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10;
  options.filter_policy = bloom.get();
  for (int round = 0; round < 3; ++round) {
    DB* opened = nullptr;
    CheckOk(DB::Open(options, dir, &opened), dir);
    if (opened == nullptr) return;
    const std::unique_ptr<DB> db(opened);
    for (int i = 0; i < 3000; ++i) {
      const std::string key = "key" + std::to_string(i * 31 % 2000);
      CheckOk(i % 11 == 0 ? db->Delete(WriteOptions(), key)
                          : db->Put(WriteOptions(), key, std::string(static_cast<size_t>(i % 60), static_cast<char>(i))),
              dir);
    }
    const Slice begin = "key1", end = "key5";
    if (round == 1) db->CompactRange(&begin, &end);
    // Flushes: what the last log holds is not left to how fast LevelDB's thread was.
    const Slice nothing = "zz";
    if (round == 2) db->CompactRange(&nothing, &nothing);
    for (int i = 0; i < 300; ++i) {
      // One among them is in several pieces.
      const std::string value(i == 20 ? 40000 : 5, 'v');
      CheckOk(db->Put(WriteOptions(), "small" + std::to_string(i), value), dir);
    }
    WriteBatch batch;
    batch.Put("one\n", Slice("\0\xff", 2));
    batch.Delete("two");
    // Over several blocks of the log.
    batch.Put("large", std::string(100000, 'l'));
    CheckOk(db->Write(WriteOptions(), &batch), dir);
  }
}

void Dump(const std::string& dir, const std::string& out) {
  std::vector<std::string> names;
  CheckOk(Env::Default()->GetChildren(dir, &names), dir);
  std::sort(names.begin(), names.end());
  WritableFile* opened = nullptr;
  CheckOk(Env::Default()->NewWritableFile(out, &opened), out);
  const std::unique_ptr<WritableFile> file(opened);
  for (const std::string& name : names) {
    if (name[0] == '.') continue;
    file->Append(name + ":\n");
    const Status status = DumpFile(Env::Default(), dir + "/" + name, file.get());
    file->Append(status.ToString() + "\n");
  }
  CheckOk(file->Close(), out);
}

bool IsLog(const std::string& name) { return name.size() > 4 && name.substr(name.size() - 4) == ".log"; }
bool IsManifest(const std::string& name) { return name.rfind("MANIFEST-", 0) == 0; }

// Bytes that are changed, left out or zero, mostly near the start, where records are short and headers many; and ends that
// are cut off.
void Damage(const std::string& dir, const std::string& out) {
  std::vector<std::string> names;
  CheckOk(Env::Default()->GetChildren(dir, &names), dir);
  std::sort(names.begin(), names.end());
  std::mt19937 random(23);
  int copies = 0;
  for (const std::string& name : names) {
    if (!IsLog(name) && !IsManifest(name)) continue;
    std::string whole;
    CheckOk(ReadFileToString(Env::Default(), dir + "/" + name, &whole), name);
    // Over the end of a block of the log.
    constexpr size_t kMost = 70000;
    whole.resize(std::min(whole.size(), kMost));
    for (int i = 0; i < 200; ++i) {
      std::string bytes = whole;
      const size_t range = i % 3 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), i % 3 == 1 ? 300 : 40);
      const size_t at = random() % range;
      const size_t len = std::min<size_t>(1 + random() % (i % 4 == 0 ? 40000 : 9), bytes.size() - at);
      switch (random() % 5) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] + 1);
          break;
        case 2:
          bytes.replace(at, len, len, '\0');
          break;
        case 3:
          bytes.erase(at, len);
          break;
        default:
          bytes.resize(random() % bytes.size());
      }
      const std::string number = std::to_string(++copies);
      CheckOk(WriteStringToFile(Env::Default(), bytes, out + (IsLog(name) ? "/" + number + ".log" : "/MANIFEST-" + number)),
              number);
    }
  }
}

// What the files of a directory are: names and bytes.
std::map<std::string, std::string> Files(const std::string& dir) {
  std::vector<std::string> names;
  CheckOk(Env::Default()->GetChildren(dir, &names), dir);
  std::map<std::string, std::string> files;
  for (const std::string& name : names) {
    if (name[0] != '.') CheckOk(ReadFileToString(Env::Default(), dir + "/" + name, &files[name]), name);
  }
  return files;
}

void Refused(const std::string& dir) {
  const auto before = Files(dir);
  Options options;
  options.create_if_missing = true;
  DB* db = nullptr;
  const Status opened = DB::Open(options, dir, &db);
  Check(opened.IsInvalidArgument() && db == nullptr, "LevelDB's files were opened: " + opened.ToString());
  Check(opened.ToString().find("esker import leveldb DIR DB") != std::string::npos, "no way out: " + opened.ToString());
  Check(!DestroyDB(dir, options).ok(), "LevelDB's files were destroyed");
  Check(!RepairDB(dir, options).ok(), "LevelDB's files were repaired");
  Check(Files(dir) == before, "LevelDB's files were changed");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  if (what == "write") {
    Write(argv[2]);
  } else if (what == "read") {
    Read(argv[2]);
  } else if (what == "store") {
    Store(argv[2]);
  } else if (what == "dump" && argc == 4) {
    Dump(argv[2], argv[3]);
  } else if (what == "damage" && argc == 4) {
    Damage(argv[2], argv[3]);
  } else if (what == "refused") {
    Refused(argv[2]);
  } else {
    std::fprintf(stderr, "error: exchange write|read|store|refused DIR, or dump|damage DIR OUT\n");
    return 2;
  }
  return failures != 0;
}
