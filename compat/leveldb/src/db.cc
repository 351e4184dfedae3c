// DB: opening, removing and repairing stores by name, and what a DB of the user's own may leave out.

#include "leveldb/db.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "db_impl.h"
#include "esker_options.h"
#include "esker_status.h"
#include "leveldb/env.h"
#include "leveldb/write_batch.h"

namespace leveldb {

DB::~DB() = default;

Status DB::Put(const WriteOptions& options, const Slice& key, const Slice& value) {
  WriteBatch batch;
  batch.Put(key, value);
  return Write(options, &batch);
}

Status DB::Delete(const WriteOptions& options, const Slice& key) {
  WriteBatch batch;
  batch.Delete(key);
  return Write(options, &batch);
}

namespace {

// As TakeStatus, in the words that LevelDB's users look for, and with the way out where the directory is one of
// LevelDB's own.
Status Opening(const std::string& name, const std::string& directory, esker_code code, esker_error** error) {
  const Status status = TakeStatus(code, error);
  switch (code) {
    case ESKER_FOREIGN_STORE:
      return Status::InvalidArgument(
          name, "holds files of LevelDB itself, and this library is Esker behind LevelDB's interface; "
                "`esker import leveldb DIR DB` copies a directory DIR of LevelDB into a new store DB");
    case ESKER_NOT_A_STORE:
      // LevelDB locks the directory before it looks what is there.
      if (access(directory.c_str(), F_OK) == 0 && access(directory.c_str(), W_OK) != 0) {
        return Status::IOError(name + "/LOCK", std::strerror(errno));
      }
      return Status::InvalidArgument(name, "does not exist (create_if_missing is false)");
    case ESKER_STORE_EXISTS:
      return Status::InvalidArgument(name, "exists (error_if_exists is true)");
    case ESKER_LOCKED:
      return Status::IOError("lock " + name + "/LOCK", "already held by process, this one or another; close it there");
    default:
      return status;
  }
}

}  // namespace

Status DB::Open(const Options& options, const std::string& name, DB** dbptr) {
  *dbptr = nullptr;
  std::string directory;
  EskerOptions translated;
  Status status = StoreDirectory(options, name, &directory);
  if (status.ok()) status = TranslateOptions(options, &translated);
  if (!status.ok()) return status;

  esker_db* db = nullptr;
  esker_error* error = nullptr;
  esker_code code = esker_db_open(directory.c_str(), translated.get(), &db, &error);
  esker_keyspace* entries = nullptr;
  if (code == ESKER_OK) code = esker_keyspace_open(db, nullptr, &entries, &error);
  if (code != ESKER_OK) {
    esker_db_close(&db, nullptr);
    status = Opening(name, directory, code, &error);
    Tell(options.info_log, name + ": open: " + status.ToString());
    return status;
  }
  *dbptr = new DBImpl(options, name, db, entries);
  return Status::OK();
}

Status DestroyDB(const std::string& name, const Options& options) {
  std::string directory;
  const Status status = StoreDirectory(options, name, &directory);
  if (!status.ok()) return status;
  // What is not there is destroyed, and for LevelDB so is what cannot be listed.
  std::vector<std::string> names;
  if (!Env::Default()->GetChildren(directory, &names).ok()) return Status::OK();
  esker_error* error = nullptr;
  const esker_code code = esker_destroy(directory.c_str(), &error);
  if (code == ESKER_OK) return status;
  const Status refused = Opening(name, directory, code, &error);
  if (code != ESKER_NOT_A_STORE) return refused;
  // It goes where it is empty, and stays where it has files of others.
  Env::Default()->RemoveDir(directory);
  return Status::OK();
}

Status RepairDB(const std::string& dbname, const Options& options) {
  std::string directory;
  EskerOptions translated;
  Status status = StoreDirectory(options, dbname, &directory);
  if (status.ok()) status = TranslateOptions(options, &translated);
  if (!status.ok()) return status;

  esker_string report = {};
  esker_error* error = nullptr;
  const esker_code code = esker_repair(directory.c_str(), translated.get(), &report, &error);
  if (code == ESKER_OK) {
    Tell(options.info_log, dbname + ": repaired: " + std::string(report.data, report.len));
    esker_string_free(&report);
    return Status::OK();
  }
  status = Opening(dbname, directory, code, &error);
  // As LevelDB has it: there was nothing to read.
  return code == ESKER_NOT_A_STORE ? Status::IOError(dbname, "repair found no files") : status;
}

}  // namespace leveldb
