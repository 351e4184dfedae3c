#include "leveldb/helpers/memenv.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mem_env.h"

namespace leveldb {

// The bytes of a file: none any more where a writer begins anew, for its readers too.
struct MemEnv::File {
  // Copies what is there of bytes [offset, offset + n).
  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (offset > bytes.size()) return Status::IOError("Offset greater than file size.");
    const size_t len = std::min<size_t>(n, bytes.size() - offset);
    memcpy(scratch, bytes.data() + offset, len);
    *result = Slice(scratch, len);
    return Status::OK();
  }

  std::mutex mutex;
  std::string bytes;
};

namespace {

using FilePointer = std::shared_ptr<MemEnv::File>;

class MemSequentialFile final : public SequentialFile {
 public:
  explicit MemSequentialFile(FilePointer file) : file_(std::move(file)) {}

  Status Read(size_t n, Slice* result, char* scratch) override {
    const Status status = file_->Read(at_, n, result, scratch);
    if (status.ok()) at_ += result->size();
    return status;
  }

  Status Skip(uint64_t n) override {
    const std::lock_guard<std::mutex> lock(file_->mutex);
    if (at_ > file_->bytes.size()) return Status::IOError("Offset greater than file size.");
    at_ += std::min<uint64_t>(n, file_->bytes.size() - at_);
    return Status::OK();
  }

 private:
  const FilePointer file_;
  uint64_t at_ = 0;
};

class MemRandomAccessFile final : public RandomAccessFile {
 public:
  explicit MemRandomAccessFile(FilePointer file) : file_(std::move(file)) {}

  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    return file_->Read(offset, n, result, scratch);
  }

 private:
  const FilePointer file_;
};

class MemWritableFile final : public WritableFile {
 public:
  explicit MemWritableFile(FilePointer file) : file_(std::move(file)) {}

  Status Append(const Slice& data) override {
    const std::lock_guard<std::mutex> lock(file_->mutex);
    file_->bytes.append(data.data(), data.size());
    return Status::OK();
  }
  Status Close() override { return Status::OK(); }
  Status Flush() override { return Status::OK(); }
  Status Sync() override { return Status::OK(); }

 private:
  const FilePointer file_;
};

// A log in memory would be read by nobody.
class NoLogger final : public Logger {
 public:
  void Logv(const char*, std::va_list) override {}
};

Status NotThere(const std::string& fname) { return Status::IOError(fname, "File not found"); }

}  // namespace

MemEnv::~MemEnv() { Delist(this); }

FilePointer MemEnv::Find(const std::string& fname) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = files_.find(fname);
  return found == files_.end() ? nullptr : found->second;
}

Status MemEnv::NewSequentialFile(const std::string& fname, SequentialFile** result) {
  FilePointer file = Find(fname);
  *result = file != nullptr ? new MemSequentialFile(std::move(file)) : nullptr;
  return *result != nullptr ? Status::OK() : NotThere(fname);
}

Status MemEnv::NewRandomAccessFile(const std::string& fname, RandomAccessFile** result) {
  FilePointer file = Find(fname);
  *result = file != nullptr ? new MemRandomAccessFile(std::move(file)) : nullptr;
  return *result != nullptr ? Status::OK() : NotThere(fname);
}

Status MemEnv::NewWritableFile(const std::string& fname, WritableFile** result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  FilePointer& file = files_[fname];
  if (file == nullptr) file = std::make_shared<File>();
  {
    const std::lock_guard<std::mutex> of_file(file->mutex);
    file->bytes.clear();
  }
  *result = new MemWritableFile(file);
  return Status::OK();
}

Status MemEnv::NewAppendableFile(const std::string& fname, WritableFile** result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  FilePointer& file = files_[fname];
  if (file == nullptr) file = std::make_shared<File>();
  *result = new MemWritableFile(file);
  return Status::OK();
}

bool MemEnv::FileExists(const std::string& fname) { return Find(fname) != nullptr; }

Status MemEnv::GetChildren(const std::string& dir, std::vector<std::string>* result) {
  result->clear();
  const std::string prefix = dir + "/";
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto at = files_.upper_bound(prefix); at != files_.end(); ++at) {
    const std::string& name = at->first;
    if (name.compare(0, prefix.size(), prefix) != 0) break;
    result->push_back(name.substr(prefix.size()));
  }
  return Status::OK();
}

Status MemEnv::RemoveFile(const std::string& fname) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return files_.erase(fname) != 0 ? Status::OK() : NotThere(fname);
}

// Directories are the beginnings of names.
Status MemEnv::CreateDir(const std::string&) { return Status::OK(); }
Status MemEnv::RemoveDir(const std::string&) { return Status::OK(); }

Status MemEnv::GetFileSize(const std::string& fname, uint64_t* file_size) {
  const FilePointer file = Find(fname);
  if (file == nullptr) return NotThere(fname);
  const std::lock_guard<std::mutex> lock(file->mutex);
  *file_size = file->bytes.size();
  return Status::OK();
}

Status MemEnv::RenameFile(const std::string& src, const std::string& target) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = files_.find(src);
  if (found == files_.end()) return NotThere(src);
  const FilePointer file = found->second;
  files_.erase(found);
  files_[target] = file;
  return Status::OK();
}

// Nobody else sees this environment; a store in it has a lock of its own.
Status MemEnv::LockFile(const std::string&, FileLock** lock) {
  *lock = new FileLock;
  return Status::OK();
}

Status MemEnv::UnlockFile(FileLock* lock) {
  delete lock;
  return Status::OK();
}

Status MemEnv::GetTestDirectory(std::string* path) {
  *path = "/test";
  return Status::OK();
}

Status MemEnv::NewLogger(const std::string&, Logger** result) {
  *result = new NoLogger;
  return Status::OK();
}

Status MemEnv::StoreDirectory(const std::string& name, std::string* directory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Status status = directory_.Make();
  if (!status.ok()) return status;
  std::string& store = stores_[name];
  if (store.empty()) store = directory_.path() + "/" + std::to_string(stores_.size());
  *directory = store;
  return Status::OK();
}

Env* NewMemEnv(Env* base_env) { return new MemEnv(base_env); }

}  // namespace leveldb
