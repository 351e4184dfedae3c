// From what Esker answers to LevelDB's Status.

#ifndef ESKER_COMPAT_LEVELDB_ESKER_STATUS_H_
#define ESKER_COMPAT_LEVELDB_ESKER_STATUS_H_

#include "esker.h"
#include "leveldb/status.h"

namespace leveldb {

// Takes the error that a call has set and frees it; there may be none. `code` is not ESKER_OK. A pointer to it, as the
// call that sets it often stands beside it, and arguments are evaluated in any order.
Status TakeStatus(esker_code code, esker_error** error);

// The same for any code: OK is the common one, and costs nothing.
inline Status StatusOf(esker_code code, esker_error** error) {
  return code == ESKER_OK ? Status::OK() : TakeStatus(code, error);
}

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_ESKER_STATUS_H_
