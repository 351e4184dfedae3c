#include "snapshot.h"

#include "esker_status.h"

namespace leveldb {

Snapshot::~Snapshot() = default;

SnapshotImpl::SnapshotImpl(const DB* owner, const esker_db* db, const esker_keyspace* entries) : owner_(owner) {
  esker_error* error = nullptr;
  esker_code code = esker_snapshot_open(db, &snapshot_, &error);
  if (code == ESKER_OK) code = esker_keyspace_at(entries, snapshot_, &view_, &error);
  status_ = StatusOf(code, &error);
}

SnapshotImpl::~SnapshotImpl() {
  esker_keyspace_close(&view_);
  esker_snapshot_close(&snapshot_);
}

}  // namespace leveldb
