// What a record of LevelDB's manifest says, in words.

#ifndef ESKER_COMPAT_LEVELDB_VERSION_EDIT_H_
#define ESKER_COMPAT_LEVELDB_VERSION_EDIT_H_

#include <string>

#include "leveldb/status.h"

namespace leveldb {

// Sets `text` to the words, in lines.
Status DescribeVersionEdit(const Slice& record, std::string* text);

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_VERSION_EDIT_H_
