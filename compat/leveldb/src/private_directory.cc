#include "private_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "posix_files.h"

namespace leveldb {

namespace {

constexpr const char* kPrefix = "leveldb-memenv-";

void RemoveAll(const std::string& path) {
  constexpr int kDescriptors = 16;
  const auto remove_one = [](const char* entry, const struct stat*, int, struct FTW*) { return std::remove(entry); };
  nftw(path.c_str(), remove_one, kDescriptors, FTW_DEPTH | FTW_PHYS);
}

// Opens and locks a directory. -1 where somebody else has locked it, or it is not there any more.
int Claim(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  // Whoever removes abandoned directories may have been quicker.
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && access(path.c_str(), F_OK) == 0) return fd;
  close(fd);
  return -1;
}

// Removes what this user's processes left that were killed.
void RemoveAbandoned(const std::string& parent) {
  DIR* opened = opendir(parent.c_str());
  if (opened == nullptr) return;
  std::vector<std::string> found;
  while (const dirent* entry = readdir(opened)) {
    if (strncmp(entry->d_name, kPrefix, strlen(kPrefix)) == 0) found.push_back(parent + "/" + entry->d_name);
  }
  closedir(opened);
  for (const std::string& path : found) {
    struct stat info;
    if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) continue;
    const int fd = Claim(path);
    if (fd < 0) continue;
    RemoveAll(path);
    close(fd);
  }
}

// Containers have 64 MB by default: a store would be full while the machine is not. One without a limit says that it has no blocks.
bool HasRoom(const char* path) {
  constexpr unsigned long long kLeast = 1ull << 30;
  struct statvfs info;
  return statvfs(path, &info) == 0 && (info.f_blocks == 0 || info.f_frsize * 1ull * info.f_bavail >= kLeast);
}

std::string Parent() {
  constexpr const char* kInMemory = "/dev/shm";
  // First, for what was left there takes its room.
  RemoveAbandoned(kInMemory);
  if (access(kInMemory, W_OK | X_OK) == 0 && HasRoom(kInMemory)) return kInMemory;
  const char* given = std::getenv("TMPDIR");
  const std::string parent = given != nullptr && *given != '\0' ? given : "/tmp";
  RemoveAbandoned(parent);
  return parent;
}

}  // namespace

PrivateDirectory::~PrivateDirectory() {
  if (path_.empty()) return;
  RemoveAll(path_);
  close(fd_);
}

Status PrivateDirectory::Make() {
  if (!path_.empty()) return Status::OK();
  const std::string parent = Parent();
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    std::string path = parent + "/" + kPrefix + "XXXXXX";
    if (mkdtemp(&path[0]) == nullptr) return PosixError(path, errno);
    fd_ = Claim(path);
    if (fd_ < 0) continue;
    path_ = path;
    return Status::OK();
  }
  return Status::IOError(parent, "no directory for stores in memory can be made and locked there");
}

}  // namespace leveldb
