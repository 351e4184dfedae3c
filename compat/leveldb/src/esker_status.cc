#include "esker_status.h"

namespace leveldb {

namespace {

Status Of(esker_code code, const Slice& text) {
  switch (code) {
    case ESKER_OK:
      return Status::OK();
    case ESKER_NOT_FOUND:
      return Status::NotFound(text);
    case ESKER_CORRUPTION:
      return Status::Corruption(text);
    case ESKER_UNSUPPORTED:
    case ESKER_READ_ONLY:
      return Status::NotSupported(text);
    // What the program asked for, or gave, does not fit what is there.
    case ESKER_INVALID_ARGUMENT:
    case ESKER_NOT_A_STORE:
    case ESKER_FOREIGN_STORE:
    case ESKER_STORE_EXISTS:
    case ESKER_COMPARATOR:
    case ESKER_KEYSPACE:
      return Status::InvalidArgument(text);
    // The system, another process, or something that stopped writing before.
    default:
      return Status::IOError(text);
  }
}

}  // namespace

Status TakeStatus(esker_code code, esker_error** error) {
  // The answer of most reads that fail: no text to look for.
  if (*error == nullptr) return Of(code, code == ESKER_NOT_FOUND ? "" : esker_code_name(code));
  const Status status = Of(code, esker_error_message(*error));
  esker_error_free(error);
  return status;
}

}  // namespace leveldb
