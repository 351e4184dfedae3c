// Env::Default(): the operating system. A store of Esker has an environment of its own; this one is for programs that
// use LevelDB's, and for tables that they write themselves.

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "posix_files.h"
#include "posix_logger.h"

namespace leveldb {

namespace {

Status Result(const std::string& name, int failed) {
  return failed == 0 ? Status::OK() : PosixError(name, errno);
}

class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

 private:
  const std::string name_;
};

// Files that are locked, by their names.
class LockedFiles {
 public:
  // The kernel's lock is of the kind that a store takes of its LOCK: the two keep each other out, in this process too.
  Status Lock(const std::string& name) {
    // Held all along, so that a fork finds every descriptor.
    const std::lock_guard<std::mutex> guard(mutex_);
    if (descriptors_.count(name) != 0) return Status::IOError("lock " + name, "already held by process");
    const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return PosixError(name, errno);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      close(fd);
      return PosixError("lock " + name, error);
    }
    descriptors_[name] = fd;
    return Status::OK();
  }

  // The file stays locked where the kernel refuses.
  Status Unlock(const std::string& name) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const int fd = descriptors_[name];
    if (fd != kOfParent) {
      if (flock(fd, LOCK_UN) != 0) return PosixError("unlock " + name, errno);
      close(fd);
    }
    descriptors_.erase(name);
    return Status::OK();
  }

  void BeforeFork() { mutex_.lock(); }
  void AfterFork() { mutex_.unlock(); }
  // The kernel's lock belongs to the open file, which a child has too: it would unlock its parent's, or hold it when
  // that one is gone.
  void InChild() {
    for (auto& [name, fd] : descriptors_) {
      if (fd != kOfParent) close(fd);
      fd = kOfParent;
    }
    mutex_.unlock();
  }

 private:
  static constexpr int kOfParent = -1;

  std::mutex mutex_;
  std::map<std::string, int> descriptors_;
};

// Never destroyed: other threads may still use it when the process ends.
LockedFiles& Locked() {
  static LockedFiles* const files = new LockedFiles;
  static const int watched =
      pthread_atfork([] { files->BeforeFork(); }, [] { files->AfterFork(); }, [] { files->InChild(); });
  static_cast<void>(watched);
  return *files;
}

// Runs what it is given one after another, on a thread that begins with the first and never ends.
class BackgroundThread {
 public:
  void Add(void (*function)(void*), void* argument) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!started_) {
      started_ = true;
      std::thread([this] { Run(); }).detach();
    }
    queue_.emplace_back(function, argument);
    added_.notify_one();
  }

 private:
  [[noreturn]] void Run() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      added_.wait(lock, [this] { return !queue_.empty(); });
      const auto [function, argument] = queue_.front();
      queue_.pop_front();
      lock.unlock();
      function(argument);
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  bool started_ = false;
  std::deque<std::pair<void (*)(void*), void*>> queue_;
};

class PosixEnv final : public Env {
 public:
  // Its thread may still use it when the process ends.
  ~PosixEnv() override {
    std::fputs("Env::Default() was deleted; it belongs to the library\n", stderr);
    std::abort();
  }

  Status NewSequentialFile(const std::string& fname, SequentialFile** result) override {
    return OpenSequentialFile(fname, result);
  }
  Status NewRandomAccessFile(const std::string& fname, RandomAccessFile** result) override {
    return OpenRandomAccessFile(fname, result);
  }
  Status NewWritableFile(const std::string& fname, WritableFile** result) override {
    return OpenWritableFile(fname, false, result);
  }
  Status NewAppendableFile(const std::string& fname, WritableFile** result) override {
    return OpenWritableFile(fname, true, result);
  }
  Status NewLogger(const std::string& fname, Logger** result) override { return OpenLogger(fname, result); }

  bool FileExists(const std::string& fname) override { return access(fname.c_str(), F_OK) == 0; }

  Status GetChildren(const std::string& dir, std::vector<std::string>* result) override {
    result->clear();
    DIR* opened = opendir(dir.c_str());
    if (opened == nullptr) return PosixError(dir, errno);
    while (const dirent* entry = readdir(opened)) result->emplace_back(entry->d_name);
    closedir(opened);
    return Status::OK();
  }

  Status RemoveFile(const std::string& fname) override { return Result(fname, unlink(fname.c_str())); }
  Status CreateDir(const std::string& dirname) override { return Result(dirname, mkdir(dirname.c_str(), 0755)); }
  Status RemoveDir(const std::string& dirname) override { return Result(dirname, rmdir(dirname.c_str())); }
  Status RenameFile(const std::string& src, const std::string& target) override {
    return Result(src, rename(src.c_str(), target.c_str()));
  }

  Status GetFileSize(const std::string& fname, uint64_t* file_size) override {
    struct stat info;
    const bool found = stat(fname.c_str(), &info) == 0;
    *file_size = found ? static_cast<uint64_t>(info.st_size) : 0;
    return found ? Status::OK() : PosixError(fname, errno);
  }

  Status LockFile(const std::string& fname, FileLock** lock) override {
    const Status status = Locked().Lock(fname);
    *lock = status.ok() ? new PosixFileLock(fname) : nullptr;
    return status;
  }

  // A lock that stays held is still the caller's.
  Status UnlockFile(FileLock* lock) override {
    PosixFileLock* held = static_cast<PosixFileLock*>(lock);
    const Status status = Locked().Unlock(held->name());
    if (status.ok()) delete held;
    return status;
  }

  void Schedule(void (*function)(void*), void* arg) override { background_.Add(function, arg); }
  void StartThread(void (*function)(void*), void* arg) override { std::thread(function, arg).detach(); }

  Status GetTestDirectory(std::string* path) override {
    const char* given = std::getenv("TEST_TMPDIR");
    *path = given != nullptr && *given != '\0' ? given : "/tmp/leveldbtest-" + std::to_string(geteuid());
    // Made when it is missing; whoever uses it sees when it cannot be.
    CreateDir(*path);
    return Status::OK();
  }

  uint64_t NowMicros() override {
    timeval now;
    gettimeofday(&now, nullptr);
    return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_usec);
  }

  void SleepForMicroseconds(int micros) override {
    std::this_thread::sleep_for(std::chrono::microseconds(micros));
  }

 private:
  BackgroundThread background_;
};

}  // namespace

Env* Env::Default() {
  static Env* const posix = new PosixEnv;
  return posix;
}

}  // namespace leveldb
