// Env: the operating system's, one in memory, and such as stand before another.

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "differences.h"
#include "harness.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/helpers/memenv.h"

using namespace leveldb;

namespace {

template <typename File>
std::unique_ptr<File> Owned(File* file) {
  return std::unique_ptr<File>(file);
}

std::string Contents(Env* env, const std::string& name) {
  std::string bytes;
  CHECK_OK(ReadFileToString(env, name, &bytes));
  return bytes;
}

// What a child runs says its answer through a pipe: Valgrind has an exit of its own where memory is left.
template <typename Function>
bool InChild(Function function) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const char answer = function();
    _exit(write(ends[1], &answer, 1) < 0);
  }
  CHECK(child > 0);
  close(ends[1]);
  char answer = 0;
  CHECK(read(ends[0], &answer, 1) == 1);
  close(ends[0]);
  CHECK(waitpid(child, nullptr, 0) == child);
  return answer != 0;
}

void CheckFiles(Env* env, const std::string& dir) {
  const std::string name = dir + "/file", other = dir + "/other";
  CHECK(!env->FileExists(name));
  SequentialFile* sequential = nullptr;
  RandomAccessFile* random = nullptr;
  WritableFile* writable = nullptr;
  uint64_t size = 0;
  CHECK(!env->NewSequentialFile(name, &sequential).ok() && sequential == nullptr);
  CHECK(!env->NewRandomAccessFile(name, &random).ok() && random == nullptr);
  CHECK(!env->GetFileSize(name, &size).ok());
  CHECK(!env->RemoveFile(name).ok());
  CHECK(!env->RenameFile(name, other).ok());

  CHECK_OK(env->NewWritableFile(name, &writable));
  {
    const auto file = Owned(writable);
    CHECK_OK(file->Append("hello "));
    CHECK_OK(file->Append(std::string(100000, 'x')));
    CHECK_OK(file->Append("world"));
    CHECK_OK(file->Flush());
    CHECK_OK(env->GetFileSize(name, &size));
    CHECK_EQ(size, 100011u);
    CHECK_OK(file->Sync());
    CHECK_OK(file->Append("!"));
    CHECK_OK(file->Close());
  }
  CHECK(env->FileExists(name));
  CHECK(Contents(env, name) == "hello " + std::string(100000, 'x') + "world!");

  CHECK_OK(env->NewAppendableFile(name, &writable));
  {
    const auto file = Owned(writable);
    CHECK_OK(file->Append("?"));
    CHECK_OK(file->Close());
  }
  CHECK_OK(env->GetFileSize(name, &size));
  CHECK_EQ(size, 100013u);

  char scratch[32];
  Slice read;
  CHECK_OK(env->NewSequentialFile(name, &sequential));
  {
    const auto file = Owned(sequential);
    CHECK_OK(file->Read(5, &read, scratch));
    CHECK_EQ(read.ToString(), "hello");
    CHECK_OK(file->Skip(100001));
    CHECK_OK(file->Read(sizeof(scratch), &read, scratch));
    CHECK_EQ(read.ToString(), "world!?");
    CHECK_OK(file->Read(sizeof(scratch), &read, scratch));
    CHECK_EQ(read.size(), 0u);
  }
  CHECK_OK(env->NewRandomAccessFile(name, &random));
  {
    const auto file = Owned(random);
    CHECK_OK(file->Read(100006, 5, &read, scratch));
    CHECK_EQ(read.ToString(), "world");
    CHECK_OK(file->Read(0, 5, &read, scratch));
    CHECK_EQ(read.ToString(), "hello");
    CHECK_OK(file->Read(100010, 3, &read, scratch));
    CHECK_EQ(read.ToString(), "d!?");
  }
  std::vector<std::string> children;
  CHECK_OK(WriteStringToFile(env, "small", other));
  CHECK_OK(env->GetChildren(dir, &children));
  const std::set<std::string> names(children.begin(), children.end());
  CHECK(names.count("file") == 1 && names.count("other") == 1);
  CHECK_OK(env->RenameFile(other, name));
  CHECK_EQ(Contents(env, name), "small");
  CHECK(!env->FileExists(other));
  CHECK_OK(env->NewWritableFile(name, &writable));
  delete writable;
  CHECK_EQ(Contents(env, name), "");
  CHECK_OK(env->RemoveFile(name));
  CHECK(!env->FileExists(name));
  CHECK_OK(WriteStringToFile(env, "old", name));
  CHECK_OK(env->DeleteFile(name));
  CHECK(!env->FileExists(name));
}

}  // namespace

TEST(files_of_the_system) {
  const Dir dir;
  CheckFiles(Env::Default(), dir.path());
  CHECK(Env::Default() == Env::Default());
}

TEST(files_in_memory) {
  const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
  CHECK_OK(env->CreateDir("/dir"));
  CheckFiles(env.get(), "/dir");
  CHECK_OK(env->RemoveDir("/dir"));
  FileLock* lock = nullptr;
  CHECK_OK(env->LockFile("/dir/LOCK", &lock));
  CHECK_OK(env->UnlockFile(lock));
  std::string path;
  CHECK_OK(env->GetTestDirectory(&path));
  Logger* logger = nullptr;
  CHECK_OK(env->NewLogger("/dir/LOG", &logger));
  delete logger;
}

TEST(a_file_in_memory_lives_while_it_is_open) {
  const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
  CHECK_OK(WriteStringToFile(env.get(), "bytes", "/f"));
  SequentialFile* opened = nullptr;
  CHECK_OK(env->NewSequentialFile("/f", &opened));
  const auto file = Owned(opened);
  CHECK_OK(env->RemoveFile("/f"));
  char scratch[8];
  Slice read;
  CHECK_OK(file->Read(8, &read, scratch));
  CHECK_EQ(read.ToString(), "bytes");
}

TEST(a_file_in_memory_that_is_written_anew_is_so_for_its_readers) {
  const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
  CHECK_OK(WriteStringToFile(env.get(), "old bytes", "/f"));
  SequentialFile* sequential = nullptr;
  RandomAccessFile* random = nullptr;
  CHECK_OK(env->NewSequentialFile("/f", &sequential));
  CHECK_OK(env->NewRandomAccessFile("/f", &random));
  const auto words = Owned(sequential);
  const auto file = Owned(random);
  char scratch[16];
  Slice read;
  CHECK_OK(words->Read(4, &read, scratch));
  CHECK_EQ(read.ToString(), "old ");
  WritableFile* writable = nullptr;
  CHECK_OK(env->NewWritableFile("/f", &writable));
  const auto writer = Owned(writable);
  CHECK_OK(file->Read(0, sizeof(scratch), &read, scratch));
  CHECK_EQ(read.size(), 0u);
  // What has been read is not there any more.
  CHECK(words->Read(4, &read, scratch).IsIOError());
  CHECK(words->Skip(1).IsIOError());
  CHECK(file->Read(4, 4, &read, scratch).IsIOError());
  CHECK_OK(writer->Append("new bytes"));
  CHECK_OK(file->Read(0, sizeof(scratch), &read, scratch));
  CHECK_EQ(read.ToString(), "new bytes");
  CHECK_OK(words->Read(sizeof(scratch), &read, scratch));
  CHECK_EQ(read.ToString(), "bytes");
}

// A manifest names files, whose names are to be durable before it.
TEST(a_manifest_is_synced_after_its_directory) {
  const Dir dir;
  Env* env = Env::Default();
  CHECK_OK(env->CreateDir(dir / "sub"));
  WritableFile *manifest = nullptr, *other = nullptr;
  CHECK_OK(env->NewWritableFile(dir / "sub/MANIFEST-000001", &manifest));
  CHECK_OK(env->NewWritableFile(dir / "sub/other", &other));
  const auto named = Owned(manifest), plain = Owned(other);
  CHECK_OK(named->Append("x"));
  CHECK_OK(named->Sync());
  // It is found by its name.
  CHECK_OK(env->RenameFile(dir / "sub", dir / "moved"));
  const Status status = named->Sync();
  CHECK(status.IsNotFound() && status.ToString().find(dir / "sub") != std::string::npos);
  CHECK_OK(plain->Sync());
  CHECK_OK(named->Close());
}

TEST(what_is_not_there_is_not_found) {
  const Dir dir;
  SequentialFile* sequential = nullptr;
  RandomAccessFile* random = nullptr;
  std::vector<std::string> children;
  CHECK(Env::Default()->NewSequentialFile(dir / "x", &sequential).IsNotFound());
  CHECK(Env::Default()->NewRandomAccessFile(dir / "x", &random).IsNotFound());
  CHECK(Env::Default()->GetChildren(dir / "x", &children).IsNotFound());
  WritableFile* writable = nullptr;
  CHECK(!Env::Default()->NewWritableFile(dir / "no/x", &writable).ok() && writable == nullptr);
  const Status status = Env::Default()->RemoveFile(dir / "x");
  CHECK(status.ToString().find(dir / "x") != std::string::npos);
}

TEST(directories_of_the_system) {
  const Dir dir;
  Env* env = Env::Default();
  CHECK_OK(env->CreateDir(dir / "sub"));
  CHECK(!env->CreateDir(dir / "sub").ok());
  CHECK(env->FileExists(dir / "sub"));
  CHECK_OK(WriteStringToFile(env, "x", dir / "sub/f"));
  CHECK(!env->RemoveDir(dir / "sub").ok());
  CHECK_OK(env->RemoveFile(dir / "sub/f"));
  CHECK_OK(env->RemoveDir(dir / "sub"));
  CHECK(!env->FileExists(dir / "sub"));
  CHECK_OK(env->CreateDir(dir / "sub"));
  CHECK_OK(env->DeleteDir(dir / "sub"));
  std::string path;
  CHECK_OK(env->GetTestDirectory(&path));
  CHECK(env->FileExists(path));
}

TEST(locks_keep_others_out) {
  const Dir dir;
  Env* env = Env::Default();
  FileLock *lock = nullptr, *second = reinterpret_cast<FileLock*>(1);
  CHECK_OK(env->LockFile(dir / "LOCK", &lock));
  const Status held = env->LockFile(dir / "LOCK", &second);
  CHECK(held.IsIOError() && second == nullptr);
  CHECK(held.ToString().find("lock " + (dir / "LOCK") + ": already held by process") != std::string::npos);
  CHECK_OK(env->UnlockFile(lock));
  CHECK_OK(env->LockFile(dir / "LOCK", &lock));
  CHECK_OK(env->UnlockFile(lock));
  CHECK(!env->LockFile(dir / "no/LOCK", &lock).ok());
  CHECK_OK(env->CreateDir(dir / "no"));
  CHECK_OK(env->LockFile(dir / "no/LOCK", &lock));
  CHECK_OK(env->UnlockFile(lock));
}

// Tools take the lock of a directory to see whether a store is open there, and to keep it closed.
TEST(a_lock_and_a_store_keep_each_other_out) {
  const Dir dir;
  Env* env = Env::Default();
  Options options;
  options.create_if_missing = true;
  DB* opened = nullptr;
  FileLock* lock = nullptr;
  CHECK_OK(DB::Open(options, dir / "db", &opened));
  auto db = Owned(opened);
  CHECK(env->LockFile(dir / "db/LOCK", &lock).IsIOError() && lock == nullptr);
  CHECK(InChild([&] { return env->LockFile(dir / "db/LOCK", &lock).IsIOError(); }));
  CHECK_OK(db->Put(WriteOptions(), "a", "1"));
  db.reset();
  CHECK_OK(env->LockFile(dir / "db/LOCK", &lock));
  CHECK(DB::Open(options, dir / "db", &opened).IsIOError());
  CHECK(DestroyDB(dir / "db", options).IsIOError());
  CHECK_OK(env->UnlockFile(lock));
  CHECK_OK(DB::Open(options, dir / "db", &opened));
  delete opened;
}

TEST(a_forked_child_unlocks_nothing_of_its_parent) {
  const Dir dir;
  Env* env = Env::Default();
  FileLock *lock = nullptr, *other = nullptr;
  CHECK_OK(env->LockFile(dir / "LOCK", &lock));
  CHECK(InChild([&] { return env->LockFile(dir / "LOCK", &other).IsIOError(); }));
  CHECK(InChild([&] { return env->UnlockFile(lock).ok(); }));
  // By another name, so that the system is asked.
  CHECK(InChild([&] { return env->LockFile(dir / "./LOCK", &other).IsIOError(); }));
  CHECK_OK(env->UnlockFile(lock));
  CHECK(InChild([&] { return env->LockFile(dir / "./LOCK", &other).ok(); }));
}

TEST(a_killed_process_leaves_no_locked_file_to_its_child) {
  const Dir dir;
  Env* env = Env::Default();
  FileLock* lock = nullptr;
  int said[2], wait[2];
  CHECK(pipe(said) == 0 && pipe(wait) == 0);
  const pid_t child = fork();
  if (child == 0) {
    if (!env->LockFile(dir / "LOCK", &lock).ok()) _exit(1);
    close(wait[1]);
    char byte = 0;
    // The grandchild lives until this test ends.
    const pid_t grandchild = fork();
    if (grandchild < 0) _exit(1);
    if (grandchild == 0) _exit(write(said[1], "", 1) < 0 || read(wait[0], &byte, 1) < 0);
    for (;;) pause();
  }
  CHECK(child > 0);
  // So that the read ends, too, where the child ends without a word.
  close(said[1]);
  char byte = 0;
  CHECK(read(said[0], &byte, 1) == 1);
  CHECK(kill(child, SIGKILL) == 0 && waitpid(child, nullptr, 0) == child);
  CHECK_OK(env->LockFile(dir / "LOCK", &lock));
  CHECK_OK(env->UnlockFile(lock));
  for (const int end : {said[0], wait[0], wait[1]}) close(end);
}

TEST(scheduled_work_runs_in_order) {
  struct Work {
    std::atomic<int> next{0}, wrong{0};
    std::thread::id thread;
  } work;
  struct Item {
    Work* work;
    int number;
  };
  std::vector<Item> items;
  for (int i = 0; i < 100; ++i) items.push_back({&work, i});
  for (Item& item : items) {
    Env::Default()->Schedule(
        [](void* argument) {
          const Item* item = static_cast<Item*>(argument);
          item->work->wrong += item->work->next != item->number;
          item->work->next = item->number + 1;
        },
        &item);
  }
  const uint64_t start = Env::Default()->NowMicros();
  while (work.next < 100 && Env::Default()->NowMicros() - start < 20000000) Env::Default()->SleepForMicroseconds(1000);
  CHECK_EQ(work.next.load(), 100);
  CHECK_EQ(work.wrong.load(), 0);
}

TEST(threads_start) {
  std::atomic<int> ran{0};
  for (int i = 0; i < 5; ++i) {
    Env::Default()->StartThread([](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &ran);
  }
  for (int i = 0; i < 5000 && ran < 5; ++i) Env::Default()->SleepForMicroseconds(1000);
  CHECK_EQ(ran.load(), 5);
}

TEST(time_goes_on) {
  const uint64_t start = Env::Default()->NowMicros();
  Env::Default()->SleepForMicroseconds(20000);
  const uint64_t passed = Env::Default()->NowMicros() - start;
  CHECK(passed >= 19000 && passed < 10000000);
}

namespace {

void Say(Logger* logger, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  logger->Logv(format, arguments);
  va_end(arguments);
}

}  // namespace

TEST(a_logger_writes_lines) {
  const Dir dir;
  Logger* opened = nullptr;
  CHECK_OK(Env::Default()->NewLogger(dir / "LOG", &opened));
  const auto logger = Owned(opened);
  Say(logger.get(), "number %d", 42);
  Say(logger.get(), "%s\n", std::string(5000, 'x').c_str());
  Say(logger.get(), "%s", "");
  const std::string text = Contents(Env::Default(), dir / "LOG");
  CHECK(text.find(" number 42\n") != std::string::npos);
  CHECK(text.find(" " + std::string(5000, 'x') + "\n") != std::string::npos);
  CHECK(text.find("\n\n") == std::string::npos);
  // 2011/01/31-23:59:59.123456
  CHECK(text[4] == '/' && text[7] == '/' && text[10] == '-' && text[13] == ':' && text[19] == '.');
}

TEST(a_logger_goes_on_in_the_file_that_is_there) {
  const Dir dir;
  for (const char* line : {"first", "second"}) {
    Logger* opened = nullptr;
    CHECK_OK(Env::Default()->NewLogger(dir / "LOG", &opened));
    const auto logger = Owned(opened);
    Say(logger.get(), "%s", line);
  }
  const std::string text = Contents(Env::Default(), dir / "LOG");
  CHECK(text.find(" first\n") < text.find(" second\n") && text.find(" second\n") != std::string::npos);
}

namespace {

struct Counting : EnvWrapper {
  explicit Counting(Env* target) : EnvWrapper(target) {}
  bool FileExists(const std::string& name) override {
    ++asked;
    return EnvWrapper::FileExists(name);
  }
  int asked = 0;
};

}  // namespace

TEST(a_wrapper_passes_on_what_it_does_not_know) {
  const Dir dir;
  Counting env(Env::Default());
  CHECK(env.target() == Env::Default());
  CheckFiles(&env, dir.path());
  CHECK_EQ(env.asked, 5);
}

namespace {

// An Env of the time when functions had other names.
struct Old : EnvWrapper {
  explicit Old(Env* target) : EnvWrapper(target) {}
  Status RemoveFile(const std::string& name) override { return Env::RemoveFile(name); }
  Status RemoveDir(const std::string& name) override { return Env::RemoveDir(name); }
  Status DeleteFile(const std::string& name) override {
    removed += name;
    return Status::OK();
  }
  Status DeleteDir(const std::string& name) override { return DeleteFile(name); }
  Status NewAppendableFile(const std::string& name, WritableFile** file) override {
    return Env::NewAppendableFile(name, file);
  }
  std::string removed;
};

}  // namespace

TEST(an_env_may_have_the_old_names) {
  Old env(Env::Default());
  CHECK_OK(env.RemoveFile("a"));
  CHECK_OK(env.RemoveDir("b"));
  CHECK_EQ(env.removed, "ab");
  WritableFile* file = nullptr;
  CHECK(env.NewAppendableFile("c", &file).IsNotSupportedError());
}

TEST(a_failed_write_leaves_no_file) {
  struct Full : EnvWrapper {
    explicit Full(Env* target) : EnvWrapper(target) {}
    struct File : WritableFile {
      Status Append(const Slice&) override { return Status::IOError("full"); }
      Status Close() override { return Status::OK(); }
      Status Flush() override { return Status::OK(); }
      Status Sync() override { return Status::OK(); }
    };
    Status NewWritableFile(const std::string&, WritableFile** file) override {
      *file = new File;
      return Status::OK();
    }
    Status RemoveFile(const std::string& name) override {
      removed = name;
      return Status::OK();
    }
    std::string removed;
  } env(Env::Default());
  CHECK(WriteStringToFile(&env, "x", "/f").IsIOError());
  CHECK_EQ(env.removed, "/f");
}

TEST(a_db_in_memory) {
  const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
  Options options;
  options.env = env.get();
  DB* opened = nullptr;
  CHECK(DB::Open(options, "/dir/db", &opened).IsInvalidArgument());
  options.create_if_missing = true;
  for (int round = 0; round < 3; ++round) {
    CHECK_OK(DB::Open(options, "/dir/db", &opened));
    const std::unique_ptr<DB> db(opened);
    CHECK_OK(DB::Open(options, "/dir/other", &opened));
    const std::unique_ptr<DB> other(opened);
    std::string value;
    if (round > 0) CHECK_OK(db->Get(ReadOptions(), "key", &value));
    if (round > 0) CHECK_EQ(value, std::to_string(round - 1));
    CHECK_OK(db->Put(WriteOptions(), "key", std::to_string(round)));
    db->CompactRange(nullptr, nullptr);
    CHECK(other->Get(ReadOptions(), "key", &value).IsNotFound());
  }
  CHECK(!Env::Default()->FileExists("/dir/db"));
  CHECK_EQ(env->FileExists("/dir/db/CURRENT"), StoreIsFilesOfMemEnv());
  CHECK_OK(DestroyDB("/dir/db", options));
  options.create_if_missing = false;
  CHECK(DB::Open(options, "/dir/db", &opened).IsInvalidArgument());
  CHECK_OK(DB::Open(options, "/dir/other", &opened));
  delete opened;
}

namespace {

// The private directory of an environment in memory, from what the process has mapped of it; empty where there is none.
std::string PrivateDirectory() {
  const std::string mark = "/leveldb-memenv-";
  const std::string maps = Contents(Env::Default(), "/proc/self/maps");
  const size_t at = maps.find(mark);
  if (at == std::string::npos) return "";
  const size_t start = maps.rfind(' ', at) + 1;
  return maps.substr(start, maps.find('/', at + 1) - start);
}

}  // namespace

TEST(a_db_in_memory_goes_with_its_env) {
  std::string directory;
  Options options;
  options.create_if_missing = true;
  for (int round = 0; round < 2; ++round) {
    const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
    options.env = env.get();
    DB* opened = nullptr;
    CHECK_OK(DB::Open(options, "/db", &opened));
    const std::unique_ptr<DB> db(opened);
    std::string value;
    CHECK(db->Get(ReadOptions(), "key", &value).IsNotFound());
    CHECK_OK(db->Put(WriteOptions(), "key", "value"));
    directory = PrivateDirectory();
    CHECK_EQ(directory.empty(), StoreIsFilesOfMemEnv());
    if (!directory.empty()) CHECK(Env::Default()->FileExists(directory));
  }
  if (!directory.empty()) CHECK(!Env::Default()->FileExists(directory));
}

TEST(what_a_killed_process_had_in_memory_is_removed) {
  if (StoreIsFilesOfMemEnv()) return;
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
    Options options;
    options.create_if_missing = true;
    options.env = env.get();
    DB* db = nullptr;
    const std::string directory = DB::Open(options, "/db", &db).ok() ? PrivateDirectory() : "";
    _exit(write(ends[1], directory.data(), directory.size()) < 0);
  }
  close(ends[1]);
  char text[256];
  const ssize_t len = read(ends[0], text, sizeof(text));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  CHECK(len > 0);
  const std::string left(text, static_cast<size_t>(len));
  CHECK(Env::Default()->FileExists(left));
  const std::unique_ptr<Env> other(NewMemEnv(Env::Default())), env(NewMemEnv(Env::Default()));
  Options options;
  options.create_if_missing = true;
  options.env = other.get();
  DB* opened = nullptr;
  CHECK_OK(DB::Open(options, "/db", &opened));
  const auto first = Owned(opened);
  CHECK(!Env::Default()->FileExists(left));
  // Those that are in use stay.
  const std::string used = PrivateDirectory();
  options.env = env.get();
  CHECK_OK(DB::Open(options, "/db", &opened));
  delete opened;
  CHECK(Env::Default()->FileExists(used));
  CHECK_OK(first->Put(WriteOptions(), "a", "1"));
}

namespace {

// Where a store in memory has its directory with a /dev/shm of so many MiB that the process alone sees; `kept` of them are taken
// by a directory that a killed process left. Empty where such a thing cannot be mounted.
std::string DirectoryBesideSharedMemoryOf(size_t mebibytes, size_t kept) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string size = "size=" + std::to_string(mebibytes) + "m", left = "/dev/shm/leveldb-memenv-left";
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, size.c_str()) != 0) {
      _exit(0);
    }
    if (kept > 0) {
      const bool made = Env::Default()->CreateDir(left).ok() &&
                        WriteStringToFile(Env::Default(), std::string(kept << 20, 'x'), left + "/file").ok();
      if (!made) _exit(1);
    }
    std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
    Options options;
    options.create_if_missing = true;
    options.env = env.get();
    DB* opened = nullptr;
    const Status status = DB::Open(options, "/db", &opened);
    const std::string directory = status.ok() ? PrivateDirectory() : status.ToString();
    delete opened;
    // Its directory goes with it.
    env.reset();
    _exit(write(ends[1], directory.data(), directory.size()) < 0);
  }
  close(ends[1]);
  char text[256];
  const ssize_t len = read(ends[0], text, sizeof(text));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return std::string(text, len > 0 ? static_cast<size_t>(len) : 0);
}

}  // namespace

// A container's /dev/shm has 64 MB: such a store was full there with gigabytes free elsewhere.
TEST(a_db_in_memory_is_not_in_a_dev_shm_with_little_room) {
  if (StoreIsFilesOfMemEnv()) return;
  const std::string with_room = DirectoryBesideSharedMemoryOf(2048, 0);
  if (with_room.empty()) {
    printf("note: nothing can be mounted here; a /dev/shm with little room is not tested\n");
    return;
  }
  const std::string in_memory = "/dev/shm/";
  CHECK_EQ(with_room.substr(0, in_memory.size()), in_memory);
  const char* given = getenv("TMPDIR");
  char real[PATH_MAX];
  CHECK(realpath(given != nullptr && *given != '\0' ? given : "/tmp", real) != nullptr);
  const std::string other = std::string(real) + "/leveldb-memenv-";
  CHECK_EQ(DirectoryBesideSharedMemoryOf(64, 0).substr(0, other.size()), other);
  // What was left there is removed first, and does not count.
  CHECK_EQ(DirectoryBesideSharedMemoryOf(1026, 4).substr(0, in_memory.size()), in_memory);
}

TEST(an_env_of_the_programs_own_is_used_or_refused) {
  const Dir dir;
  Counting env(Env::Default());
  Options options;
  options.create_if_missing = true;
  options.env = &env;
  DB* opened = nullptr;
  const Status status = DB::Open(options, dir / "db", &opened);
  CHECK_EQ(status.IsNotSupportedError(), RefusesOwnEnv());
  if (RefusesOwnEnv()) CHECK(status.ToString().find("NewMemEnv") != std::string::npos);
  delete opened;
  CHECK_EQ(DestroyDB(dir / "db", options).IsNotSupportedError(), RefusesOwnEnv());
  CHECK_EQ(RepairDB(dir / "db", options).IsNotSupportedError(), RefusesOwnEnv());
}

TEST(a_db_tells_its_logger) {
  struct Lines : Logger {
    void Logv(const char* format, std::va_list arguments) override {
      char line[1000];
      std::vsnprintf(line, sizeof(line), format, arguments);
      const std::lock_guard<std::mutex> lock(mutex);
      ++count;
      last = line;
    }
    std::mutex mutex;
    int count = 0;
    std::string last;
  } logger;
  const Dir dir;
  Options options;
  options.create_if_missing = true;
  options.info_log = &logger;
  DB* opened = nullptr;
  CHECK_OK(DB::Open(options, dir / "db", &opened));
  delete opened;
  CHECK(logger.count > 0);
}
