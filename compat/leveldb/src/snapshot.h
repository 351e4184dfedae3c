// A moment of one store.

#ifndef ESKER_COMPAT_LEVELDB_SNAPSHOT_H_
#define ESKER_COMPAT_LEVELDB_SNAPSHOT_H_

#include "esker.h"
#include "leveldb/db.h"

namespace leveldb {

class SnapshotImpl final : public Snapshot {
 public:
  // Where no snapshot can be had, those who read with it are told why.
  SnapshotImpl(const DB* owner, const esker_db* db, const esker_keyspace* entries);
  ~SnapshotImpl() override;

  const DB* owner() const { return owner_; }
  const Status& status() const { return status_; }
  // The entries as they were.
  const esker_keyspace* entries() const { return view_; }

 private:
  const DB* const owner_;
  Status status_;
  esker_snapshot* snapshot_ = nullptr;
  esker_keyspace* view_ = nullptr;
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_SNAPSHOT_H_
