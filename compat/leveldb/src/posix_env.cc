// Env::Default(): the operating system. A store of Esker has an environment of its own; this one is for programs that
// use LevelDB's, and for tables that they write themselves.

#include <dirent.h>
#include <fcntl.h>
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
#include <mutex>
#include <set>
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
  PosixFileLock(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}

  const std::string& name() const { return name_; }
  int fd() const { return fd_; }

 private:
  const std::string name_;
  const int fd_;
};

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

  // The kernel's lock is of the kind that a store takes of its LOCK: the two keep each other out, in this process too.
  Status LockFile(const std::string& fname, FileLock** lock) override {
    *lock = nullptr;
    {
      const std::lock_guard<std::mutex> guard(locks_mutex_);
      if (!locks_.insert(fname).second) {
        return Status::IOError("lock " + fname, "already held by process");
      }
    }
    const int fd = open(fname.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
      *lock = new PosixFileLock(fname, fd);
      return Status::OK();
    }
    const int error = errno;
    if (fd >= 0) close(fd);
    ForgetLock(fname);
    return PosixError((fd >= 0 ? "lock " : "") + fname, error);
  }

  Status UnlockFile(FileLock* lock) override {
    PosixFileLock* held = static_cast<PosixFileLock*>(lock);
    // It stays held where the kernel refuses, and so does the caller's pointer.
    if (flock(held->fd(), LOCK_UN) != 0) return PosixError("unlock " + held->name(), errno);
    ForgetLock(held->name());
    close(held->fd());
    delete held;
    return Status::OK();
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
  void ForgetLock(const std::string& fname) {
    const std::lock_guard<std::mutex> guard(locks_mutex_);
    locks_.erase(fname);
  }

  std::mutex locks_mutex_;
  std::set<std::string> locks_;
  BackgroundThread background_;
};

}  // namespace

Env* Env::Default() {
  static Env* const posix = new PosixEnv;
  return posix;
}

}  // namespace leveldb
