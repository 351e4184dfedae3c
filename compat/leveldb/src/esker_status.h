// From what Esker answers to LevelDB's Status.

#ifndef ESKER_COMPAT_LEVELDB_ESKER_STATUS_H_
#define ESKER_COMPAT_LEVELDB_ESKER_STATUS_H_

#include "esker.h"
#include "leveldb/status.h"

namespace leveldb {

// Takes `error`, which may be null, and frees it. `code` is not ESKER_OK.
Status TakeStatus(esker_code code, esker_error* error);

// The same for any code: OK is the common one, and costs nothing.
inline Status StatusOf(esker_code code, esker_error* error) {
  return code == ESKER_OK ? Status::OK() : TakeStatus(code, error);
}

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_ESKER_STATUS_H_
