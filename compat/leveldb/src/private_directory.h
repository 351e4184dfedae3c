// A directory for stores in memory: in /dev/shm where that has a gigabyte free, else in TMPDIR, else in /tmp. It is removed
// with the object; that of a process which was killed, by the next process that makes one.

#ifndef ESKER_COMPAT_LEVELDB_PRIVATE_DIRECTORY_H_
#define ESKER_COMPAT_LEVELDB_PRIVATE_DIRECTORY_H_

#include <string>

#include "leveldb/status.h"

namespace leveldb {

class PrivateDirectory {
 public:
  PrivateDirectory() = default;
  ~PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  // Makes it, if it is not there yet.
  Status Make();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  // Its lock says that somebody uses it. Kernels give back that of a process that is gone.
  int fd_ = -1;
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_PRIVATE_DIRECTORY_H_
