// What DB::GetProperty answers.

#ifndef ESKER_COMPAT_LEVELDB_PROPERTIES_H_
#define ESKER_COMPAT_LEVELDB_PROPERTIES_H_

#include <string>

#include "esker.h"
#include "leveldb/slice.h"

namespace leveldb {

// Sets `value` to the property's; false for one that LevelDB does not know.
bool ReadProperty(const esker_db* db, const Slice& property, std::string* value);

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_PROPERTIES_H_
