#include "db_impl.h"

#include <utility>

#include "db_iterator.h"
#include "esker_status.h"
#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "properties.h"
#include "snapshot.h"
#include "write_batch_internal.h"

namespace leveldb {

namespace {

esker_durability DurabilityOf(const WriteOptions& options) {
  return options.sync ? ESKER_DURABILITY_SYNCED : ESKER_DURABILITY_BUFFERED;
}

// The batch that each thread keeps from one write to the next. Whoever writes takes it: a comparator of the program's
// runs in the middle of a write, and may write to another DB.
thread_local esker_batch* spare = nullptr;
// Objects of the program's may write when the thread ends, after the spare batch is freed: nobody would free another.
thread_local bool ended = false;
struct SpareOwner {
  ~SpareOwner() {
    ended = true;
    esker_batch_free(&spare);
  }
};

void KeepSpare(esker_batch* batch) {
  static thread_local const SpareOwner owner;
  spare = batch;
}

class BatchLease {
 public:
  BatchLease() : batch_(std::exchange(spare, nullptr)) {
    if (batch_ == nullptr) batch_ = esker_batch_new();
  }
  ~BatchLease() {
    // One that was large once does not keep its memory.
    if (!ended && spare == nullptr && esker_batch_byte_len(batch_) <= kKept) {
      esker_batch_clear(batch_);
      KeepSpare(std::exchange(batch_, nullptr));
    }
    esker_batch_free(&batch_);
  }
  BatchLease(const BatchLease&) = delete;
  BatchLease& operator=(const BatchLease&) = delete;

  esker_batch* get() const { return batch_; }

 private:
  static constexpr size_t kKept = 1 << 20;

  esker_batch* batch_;
};

// A value in the store's own memory, given back also when there is none for the copy.
struct PinnedValue {
  ~PinnedValue() { esker_value_release(&value); }
  esker_value value;
};

// Puts the entries of `updates` into `batch`.
Status Translate(const WriteBatch* updates, esker_batch* batch) {
  esker_error* error = nullptr;
  esker_code code = ESKER_OK;
  const auto put = [&](const Slice& key, const Slice& value) {
    code = esker_batch_put(batch, nullptr, key.data(), key.size(), value.data(), value.size(), &error);
    return code == ESKER_OK;
  };
  const auto erase = [&](const Slice& key) {
    code = esker_batch_delete(batch, nullptr, key.data(), key.size(), &error);
    return code == ESKER_OK;
  };
  const Status status = WriteBatchInternal::ForEach(updates, put, erase);
  return code == ESKER_OK ? status : TakeStatus(code, &error);
}

// What a batch of one entry has: a write of it needs no batch of Esker's, and copies nothing.
struct OneEntry {
  bool is_put = false;
  Slice key, value;
};

Status ReadOne(const WriteBatch* updates, OneEntry* one) {
  const auto put = [one](const Slice& key, const Slice& value) {
    *one = {true, key, value};
    return true;
  };
  const auto erase = [one](const Slice& key) {
    *one = {false, key, Slice()};
    return true;
  };
  return WriteBatchInternal::ForEach(updates, put, erase);
}

}  // namespace

void Tell(Logger* logger, const std::string& line) {
  try {
    Log(logger, "%s", line.c_str());
  } catch (...) {
    // The program's logger failed, which there is no place to say.
  }
}

DBImpl::DBImpl(const Options& options, std::string name, esker_db* db, esker_keyspace* entries)
    : name_(std::move(name)),
      bytewise_(options.comparator == BytewiseComparator()),
      info_log_(options.info_log),
      db_(db),
      entries_(entries) {
  Tell(info_log_, name_ + ": opened with Esker " + esker_version());
}

DBImpl::~DBImpl() {
  esker_keyspace_close(&entries_);
  esker_error* error = nullptr;
  const Status status = StatusOf(esker_db_close(&db_, &error), &error);
  if (!status.ok()) LogFailure("close", status);
}

void DBImpl::LogFailure(const char* what, const Status& status) const {
  Tell(info_log_, name_ + ": " + what + ": " + status.ToString());
}

Status DBImpl::Written(esker_code code, esker_error** error) {
  const Status status = StatusOf(code, error);
  if (code == ESKER_HALTED && !stop_is_logged_.exchange(true)) LogFailure("write", status);
  return status;
}

Status DBImpl::Put(const WriteOptions& options, const Slice& key, const Slice& value) {
  esker_error* error = nullptr;
  const esker_code code =
      esker_put(entries_, Data(key), key.size(), Data(value), value.size(), DurabilityOf(options), &error);
  return Written(code, &error);
}

Status DBImpl::Delete(const WriteOptions& options, const Slice& key) {
  esker_error* error = nullptr;
  return Written(esker_delete(entries_, Data(key), key.size(), DurabilityOf(options), &error), &error);
}

Status DBImpl::Write(const WriteOptions& options, WriteBatch* updates) {
  esker_error* error = nullptr;
  // LevelDB's way to have what is in memory written into tables.
  if (updates == nullptr) return Written(esker_db_flush(db_, &error), &error);

  if (WriteBatchInternal::Count(updates) == 1) {
    OneEntry one;
    const Status status = ReadOne(updates, &one);
    if (!status.ok()) return status;
    return one.is_put ? Put(options, one.key, one.value) : Delete(options, one.key);
  }
  const BatchLease lease;
  esker_batch* batch = lease.get();
  const Status status = Translate(updates, batch);
  if (!status.ok()) return status;
  return Written(esker_write(db_, batch, DurabilityOf(options), &error), &error);
}

Status DBImpl::Source(const ReadOptions& options, const esker_keyspace** source) const {
  *source = entries_;
  if (options.snapshot == nullptr) return Status::OK();
  const auto* snapshot = static_cast<const SnapshotImpl*>(options.snapshot);
  if (snapshot->owner() != this) return Status::InvalidArgument(name_, "the snapshot is of another DB");
  *source = snapshot->entries();
  return snapshot->status();
}

Status DBImpl::Get(const ReadOptions& options, const Slice& key, std::string* value) {
  const esker_keyspace* source = entries_;
  if (options.snapshot != nullptr) {
    const Status status = Source(options, &source);
    if (!status.ok()) return status;
  }
  PinnedValue found;
  esker_error* error = nullptr;
  const esker_code code = esker_get(source, Data(key), key.size(), &found.value, &error);
  if (code != ESKER_OK) return TakeStatus(code, &error);
  value->assign(reinterpret_cast<const char*>(found.value.data), found.value.len);
  return Status::OK();
}

Iterator* DBImpl::NewIterator(const ReadOptions& options) {
  const esker_keyspace* source = nullptr;
  const Status status = Source(options, &source);
  return status.ok() ? NewDBIterator(source) : NewErrorIterator(status);
}

const Snapshot* DBImpl::GetSnapshot() { return new SnapshotImpl(this, db_, entries_); }

void DBImpl::ReleaseSnapshot(const Snapshot* snapshot) { delete static_cast<const SnapshotImpl*>(snapshot); }

bool DBImpl::GetProperty(const Slice& property, std::string* value) {
  return ReadProperty(db_, property, value);
}

void DBImpl::GetApproximateSizes(const Range* range, int n, uint64_t* sizes) {
  for (int i = 0; i < n; ++i) {
    const Slice &start = range[i].start, &limit = range[i].limit;
    esker_error* error = nullptr;
    sizes[i] = 0;
    const esker_code code = esker_approximate_size(entries_, Data(start), start.size(), Data(limit), limit.size(),
                                                   &sizes[i], &error);
    if (code != ESKER_OK) LogFailure("approximate size", TakeStatus(code, &error));
  }
}

void DBImpl::CompactRange(const Slice* begin, const Slice* end) {
  // LevelDB's end is compacted too, Esker's is not. What follows it is known of bytes; in an order of the program's
  // own everything behind is taken along.
  std::string past;
  const bool bounded = end != nullptr && bytewise_;
  if (bounded) past.assign(end->data(), end->size()).push_back('\0');
  esker_error* error = nullptr;
  const esker_code code =
      esker_compact_range(entries_, begin != nullptr ? Data(*begin) : nullptr, begin != nullptr ? begin->size() : 0,
                          bounded ? past.data() : nullptr, past.size(), &error);
  if (code != ESKER_OK) LogFailure("compact", TakeStatus(code, &error));
}

}  // namespace leveldb
