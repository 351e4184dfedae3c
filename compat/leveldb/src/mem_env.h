// The environment of NewMemEnv: files in memory. A store that is opened in it is in a private directory of the
// operating system, which is removed with the environment.

#ifndef ESKER_COMPAT_LEVELDB_MEM_ENV_H_
#define ESKER_COMPAT_LEVELDB_MEM_ENV_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "leveldb/env.h"
#include "own_objects.h"
#include "private_directory.h"

namespace leveldb {

class MemEnv final : public EnvWrapper, public Listed<Env, MemEnv> {
 public:
  struct File;

  explicit MemEnv(Env* base) : EnvWrapper(base) { Enlist(this); }
  ~MemEnv() override;

  Status NewSequentialFile(const std::string& fname, SequentialFile** result) override;
  Status NewRandomAccessFile(const std::string& fname, RandomAccessFile** result) override;
  Status NewWritableFile(const std::string& fname, WritableFile** result) override;
  Status NewAppendableFile(const std::string& fname, WritableFile** result) override;
  bool FileExists(const std::string& fname) override;
  Status GetChildren(const std::string& dir, std::vector<std::string>* result) override;
  Status RemoveFile(const std::string& fname) override;
  Status CreateDir(const std::string& dirname) override;
  Status RemoveDir(const std::string& dirname) override;
  Status GetFileSize(const std::string& fname, uint64_t* file_size) override;
  Status RenameFile(const std::string& src, const std::string& target) override;
  Status LockFile(const std::string& fname, FileLock** lock) override;
  Status UnlockFile(FileLock* lock) override;
  Status GetTestDirectory(std::string* path) override;
  Status NewLogger(const std::string& fname, Logger** result) override;

  // The directory of the operating system in which the store called `name` is.
  Status StoreDirectory(const std::string& name, std::string* directory);

 private:
  // Files live on while somebody has them open, whatever becomes of their names.
  std::shared_ptr<File> Find(const std::string& fname);

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<File>> files_;
  // Made with the first store.
  PrivateDirectory directory_;
  std::map<std::string, std::string> stores_;
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_MEM_ENV_H_
