// A log for people: lines with the time and the thread.

#ifndef ESKER_COMPAT_LEVELDB_POSIX_LOGGER_H_
#define ESKER_COMPAT_LEVELDB_POSIX_LOGGER_H_

#include <string>

#include "leveldb/env.h"

namespace leveldb {

Status OpenLogger(const std::string& fname, Logger** result);

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_POSIX_LOGGER_H_
