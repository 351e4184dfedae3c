// DumpFile: what a file of LevelDB's holds, in lines for people. Esker's own files are for `esker stats` and
// `esker verify`.

#include "leveldb/dumpfile.h"

#include <cstring>
#include <memory>
#include <string>

#include "internal_key.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/table.h"
#include "log_reader.h"
#include "version_edit.h"
#include "write_batch_internal.h"

namespace leveldb {

namespace {

std::string Offset(uint64_t offset) { return "--- offset " + std::to_string(offset) + "; "; }

std::string BatchInWords(const Slice& record, uint64_t offset) {
  if (record.size() < WriteBatchInternal::kHeader) {
    return Offset(offset) + "log record length " + std::to_string(record.size()) + " is too small\n";
  }
  WriteBatch batch;
  WriteBatchInternal::SetContents(&batch, record);
  std::string text =
      Offset(offset) + "sequence " + std::to_string(WriteBatchInternal::Sequence(&batch)) + "\n";
  const auto put = [&text](const Slice& key, const Slice& value) {
    text += "  put '" + Escaped(key) + "' '" + Escaped(value) + "'\n";
    return true;
  };
  const auto erase = [&text](const Slice& key) {
    text += "  del '" + Escaped(key) + "'\n";
    return true;
  };
  const Status status = WriteBatchInternal::ForEach(&batch, put, erase);
  if (!status.ok()) text += "  error: " + status.ToString() + "\n";
  return text;
}

std::string EditInWords(const Slice& record, uint64_t offset) {
  std::string text;
  const Status status = DescribeVersionEdit(record, &text);
  return Offset(offset) + (status.ok() ? text : status.ToString() + "\n");
}

Status DumpRecords(Env* env, const std::string& fname, std::string (*in_words)(const Slice&, uint64_t),
                   WritableFile* dst) {
  SequentialFile* opened = nullptr;
  Status status = env->NewSequentialFile(fname, &opened);
  if (!status.ok()) return status;
  const std::unique_ptr<SequentialFile> file(opened);
  const auto report = [dst](size_t bytes, const Status& why) {
    dst->Append("corruption: " + std::to_string(bytes) + " bytes; " + why.ToString() + "\n");
  };
  LogReader reader(file.get(), report);
  Slice record;
  for (uint64_t offset = 0; reader.Read(&record, &offset);) dst->Append(in_words(record, offset));
  return Status::OK();
}

std::string EntryInWords(const Slice& bytes, const Slice& value) {
  InternalKey key;
  if (!ParseInternalKey(bytes, &key)) return "badkey '" + Escaped(bytes) + "' => '" + Escaped(value) + "'\n";
  return "'" + Escaped(key.user_key) + "' @ " + std::to_string(key.sequence) + " : " + (key.is_put ? "val" : "del") +
         " => '" + Escaped(value) + "'\n";
}

Status DumpTable(Env* env, const std::string& fname, WritableFile* dst) {
  uint64_t size = 0;
  Status status = env->GetFileSize(fname, &size);
  if (!status.ok()) return status;
  RandomAccessFile* opened = nullptr;
  status = env->NewRandomAccessFile(fname, &opened);
  if (!status.ok()) return status;
  const std::unique_ptr<RandomAccessFile> file(opened);
  Table* read = nullptr;
  status = Table::Open(Options(), file.get(), size, &read);
  if (!status.ok()) return status;
  const std::unique_ptr<Table> table(read);
  ReadOptions options;
  options.fill_cache = false;
  const std::unique_ptr<Iterator> iterator(table->NewIterator(options));
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    dst->Append(EntryInWords(iterator->key(), iterator->value()));
  }
  status = iterator->status();
  if (!status.ok()) dst->Append("iterator error: " + status.ToString() + "\n");
  return Status::OK();
}

// What a file of LevelDB's is, by its name: a word or a number, with what stands before or behind it.
enum class Kind { kUnknown, kOther, kLog, kManifest, kTable };

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

Kind KindOf(const std::string& name) {
  constexpr const char* kManifest = "MANIFEST-";
  if (name == "CURRENT" || name == "LOCK" || name == "LOG" || name == "LOG.old") return Kind::kOther;
  if (name.rfind(kManifest, 0) == 0 && IsNumber(name.substr(strlen(kManifest)))) return Kind::kManifest;
  const size_t dot = name.find('.');
  if (dot == std::string::npos || !IsNumber(name.substr(0, dot))) return Kind::kUnknown;
  const std::string suffix = name.substr(dot);
  if (suffix == ".log") return Kind::kLog;
  if (suffix == ".ldb" || suffix == ".sst") return Kind::kTable;
  return suffix == ".dbtmp" ? Kind::kOther : Kind::kUnknown;
}

}  // namespace

Status DumpFile(Env* env, const std::string& fname, WritableFile* dst) {
  switch (KindOf(fname.substr(fname.rfind('/') + 1))) {
    case Kind::kLog:
      return DumpRecords(env, fname, BatchInWords, dst);
    case Kind::kManifest:
      return DumpRecords(env, fname, EditInWords, dst);
    case Kind::kTable:
      return DumpTable(env, fname, dst);
    case Kind::kOther:
      return Status::InvalidArgument(fname + ": not a dump-able file type");
    default:
      return Status::InvalidArgument(fname + ": unknown file type");
  }
}

}  // namespace leveldb
