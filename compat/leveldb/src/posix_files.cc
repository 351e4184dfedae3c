#include "posix_files.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace leveldb {

Status PosixError(const std::string& context, int error) {
  const std::string why = std::strerror(error);
  return error == ENOENT ? Status::NotFound(context, why) : Status::IOError(context, why);
}

namespace {

// A descriptor with the name of its file, for messages.
class Descriptor {
 public:
  Descriptor(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  const std::string& name() const { return name_; }
  int fd() const { return fd_; }
  Status Error() const { return PosixError(name_, errno); }

  Status Close() {
    const int fd = std::exchange(fd_, -1);
    return fd >= 0 && close(fd) != 0 ? Error() : Status::OK();
  }

 private:
  const std::string name_;
  int fd_;
};

class PosixSequentialFile final : public SequentialFile {
 public:
  PosixSequentialFile(const std::string& name, int fd) : file_(name, fd) {}

  Status Read(size_t n, Slice* result, char* scratch) override {
    *result = Slice();
    ssize_t read = 0;
    do {
      read = ::read(file_.fd(), scratch, n);
    } while (read < 0 && errno == EINTR);
    if (read < 0) return file_.Error();
    *result = Slice(scratch, static_cast<size_t>(read));
    return Status::OK();
  }

  Status Skip(uint64_t n) override {
    const bool moved = lseek(file_.fd(), static_cast<off_t>(n), SEEK_CUR) != -1;
    return moved ? Status::OK() : file_.Error();
  }

 private:
  Descriptor file_;
};

class PosixRandomAccessFile final : public RandomAccessFile {
 public:
  PosixRandomAccessFile(const std::string& name, int fd) : file_(name, fd) {}

  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    size_t done = 0;
    while (done < n) {
      const ssize_t read = pread(file_.fd(), scratch + done, n - done, static_cast<off_t>(offset + done));
      if (read < 0 && errno == EINTR) continue;
      if (read < 0) {
        *result = Slice();
        return file_.Error();
      }
      if (read == 0) break;
      done += static_cast<size_t>(read);
    }
    *result = Slice(scratch, done);
    return Status::OK();
  }

 private:
  Descriptor file_;
};

// Gathers small pieces: Flush, Sync and Close hand them to the system.
class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(const std::string& name, int fd) : file_(name, fd) {}
  ~PosixWritableFile() override {
    if (file_.fd() >= 0) Close();
  }

  Status Append(const Slice& data) override {
    if (gathered_.size() + data.size() <= kGathered) {
      gathered_.append(data.data(), data.size());
      return Status::OK();
    }
    const Status status = Flush();
    if (!status.ok()) return status;
    if (data.size() > kGathered) return WriteAll(data.data(), data.size());
    gathered_.assign(data.data(), data.size());
    return Status::OK();
  }

  Status Flush() override {
    const Status status = WriteAll(gathered_.data(), gathered_.size());
    gathered_.clear();
    return status;
  }

  Status Sync() override {
    // The files that a manifest names are found before it is.
    Status status = IsManifest() ? SyncDirectory() : Status::OK();
    if (status.ok()) status = Flush();
    if (!status.ok()) return status;
    return fdatasync(file_.fd()) == 0 ? Status::OK() : file_.Error();
  }

  Status Close() override {
    const Status flushed = Flush();
    const Status closed = file_.Close();
    return flushed.ok() ? closed : flushed;
  }

 private:
  static constexpr size_t kGathered = 64 * 1024;

  // By the name without its directory, as LevelDB calls its own.
  bool IsManifest() const { return file_.name().compare(file_.name().rfind('/') + 1, 8, "MANIFEST") == 0; }

  Status SyncDirectory() const {
    const size_t slash = file_.name().rfind('/');
    const std::string name = slash == std::string::npos ? "." : file_.name().substr(0, slash == 0 ? 1 : slash);
    const Descriptor directory(name, open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return directory.fd() >= 0 && fsync(directory.fd()) == 0 ? Status::OK() : directory.Error();
  }

  Status WriteAll(const char* data, size_t len) {
    while (len > 0) {
      const ssize_t written = write(file_.fd(), data, len);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return file_.Error();
      data += written;
      len -= static_cast<size_t>(written);
    }
    return Status::OK();
  }

  Descriptor file_;
  std::string gathered_;
};

template <typename File, typename Base>
Status Open(const std::string& fname, int flags, Base** result) {
  const int fd = open(fname.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) {
    *result = nullptr;
    return PosixError(fname, errno);
  }
  *result = new File(fname, fd);
  return Status::OK();
}

}  // namespace

Status OpenSequentialFile(const std::string& fname, SequentialFile** result) {
  return Open<PosixSequentialFile>(fname, O_RDONLY, result);
}

Status OpenRandomAccessFile(const std::string& fname, RandomAccessFile** result) {
  return Open<PosixRandomAccessFile>(fname, O_RDONLY, result);
}

Status OpenWritableFile(const std::string& fname, bool append, WritableFile** result) {
  return Open<PosixWritableFile>(fname, O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC), result);
}

}  // namespace leveldb
