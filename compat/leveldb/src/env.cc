// The classes of env.h: what each does where a user's own class leaves it out, and files read and written whole.

#include "leveldb/env.h"

#include <memory>

namespace leveldb {

Env::Env() = default;
Env::~Env() = default;
SequentialFile::~SequentialFile() = default;
RandomAccessFile::~RandomAccessFile() = default;
WritableFile::~WritableFile() = default;
Logger::~Logger() = default;
FileLock::~FileLock() = default;
EnvWrapper::~EnvWrapper() = default;

Status Env::NewAppendableFile(const std::string& fname, WritableFile**) {
  return Status::NotSupported("NewAppendableFile", fname);
}

// An Env has one of each pair, under its old or its new name; the other leads to it.
Status Env::RemoveFile(const std::string& fname) { return DeleteFile(fname); }
Status Env::DeleteFile(const std::string& fname) { return RemoveFile(fname); }
Status Env::RemoveDir(const std::string& dirname) { return DeleteDir(dirname); }
Status Env::DeleteDir(const std::string& dirname) { return RemoveDir(dirname); }

void Log(Logger* info_log, const char* format, ...) {
  if (info_log == nullptr) return;
  std::va_list arguments;
  va_start(arguments, format);
  info_log->Logv(format, arguments);
  va_end(arguments);
}

Status WriteStringToFile(Env* env, const Slice& data, const std::string& fname) {
  WritableFile* opened = nullptr;
  Status status = env->NewWritableFile(fname, &opened);
  if (!status.ok()) return status;
  std::unique_ptr<WritableFile> file(opened);
  status = file->Append(data);
  if (status.ok()) status = file->Close();
  file.reset();
  // No file rather than half of one.
  if (!status.ok()) env->RemoveFile(fname);
  return status;
}

Status ReadFileToString(Env* env, const std::string& fname, std::string* data) {
  data->clear();
  SequentialFile* opened = nullptr;
  Status status = env->NewSequentialFile(fname, &opened);
  if (!status.ok()) return status;
  const std::unique_ptr<SequentialFile> file(opened);
  constexpr size_t kAtOnce = 8192;
  const std::unique_ptr<char[]> buffer(new char[kAtOnce]);
  for (;;) {
    Slice read;
    status = file->Read(kAtOnce, &read, buffer.get());
    if (!status.ok() || read.empty()) return status;
    data->append(read.data(), read.size());
  }
}

}  // namespace leveldb
