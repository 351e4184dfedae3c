// Files of the operating system behind the classes of env.h.

#ifndef ESKER_COMPAT_LEVELDB_POSIX_FILES_H_
#define ESKER_COMPAT_LEVELDB_POSIX_FILES_H_

#include <string>

#include "leveldb/env.h"

namespace leveldb {

// The status of a call that failed with `error`, an errno: NotFound where nothing is there.
Status PosixError(const std::string& context, int error);

Status OpenSequentialFile(const std::string& fname, SequentialFile** result);
Status OpenRandomAccessFile(const std::string& fname, RandomAccessFile** result);
// From an empty file, or from the end of the one that is there.
Status OpenWritableFile(const std::string& fname, bool append, WritableFile** result);

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_POSIX_FILES_H_
