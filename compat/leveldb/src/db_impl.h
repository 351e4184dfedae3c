// DB over a store of Esker: its default keyspace.

#ifndef ESKER_COMPAT_LEVELDB_DB_IMPL_H_
#define ESKER_COMPAT_LEVELDB_DB_IMPL_H_

#include <atomic>
#include <string>

#include "esker.h"
#include "leveldb/db.h"

namespace leveldb {

// What a Slice points to, for an interface in which a null pointer is never an empty text.
inline const char* Data(const Slice& bytes) { return bytes.data() != nullptr ? bytes.data() : ""; }

// A line for the program's log. What its logger throws goes no further: the store is not done yet.
void Tell(Logger* logger, const std::string& line);

class DBImpl final : public DB {
 public:
  // Takes the handles. `name` is for messages.
  DBImpl(const Options& options, std::string name, esker_db* db, esker_keyspace* entries);
  ~DBImpl() override;

  Status Put(const WriteOptions& options, const Slice& key, const Slice& value) override;
  Status Delete(const WriteOptions& options, const Slice& key) override;
  Status Write(const WriteOptions& options, WriteBatch* updates) override;
  Status Get(const ReadOptions& options, const Slice& key, std::string* value) override;
  Iterator* NewIterator(const ReadOptions& options) override;
  const Snapshot* GetSnapshot() override;
  void ReleaseSnapshot(const Snapshot* snapshot) override;
  bool GetProperty(const Slice& property, std::string* value) override;
  void GetApproximateSizes(const Range* range, int n, uint64_t* sizes) override;
  void CompactRange(const Slice* begin, const Slice* end) override;

 private:
  // The entries as of the options' snapshot, or now.
  Status Source(const ReadOptions& options, const esker_keyspace** source) const;
  // What has nobody to return an error to writes it to the program's log.
  void LogFailure(const char* what, const Status& status) const;

  // The Status of a write. That writes are stopped, by what failed in the background, goes to the program's log, once.
  Status Written(esker_code code, esker_error** error);

  const std::string name_;
  const bool bytewise_;
  Logger* const info_log_;
  esker_db* db_;
  esker_keyspace* entries_;
  std::atomic<bool> stop_is_logged_{false};
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_DB_IMPL_H_
