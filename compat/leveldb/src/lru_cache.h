// The cache that NewLRUCache makes. Its capacity counts towards a store's memory.

#ifndef ESKER_COMPAT_LEVELDB_LRU_CACHE_H_
#define ESKER_COMPAT_LEVELDB_LRU_CACHE_H_

#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "leveldb/cache.h"
#include "own_objects.h"

namespace leveldb {

// An entry is in the map until it is erased, replaced or evicted, and lives on while there are handles to it. Those
// that are in the map and have no handle are in `unused_`, least recently used first: they are what can be evicted.
class LRUCache final : public Cache, public Listed<Cache, LRUCache> {
 public:
  using Deleter = void (*)(const Slice& key, void* value);

  explicit LRUCache(size_t capacity) : capacity_(capacity) { Enlist(this); }
  ~LRUCache() override;

  Handle* Insert(const Slice& key, void* value, size_t charge, Deleter deleter) override;
  Handle* Lookup(const Slice& key) override;
  void Release(Handle* handle) override;
  void* Value(Handle* handle) override;
  void Erase(const Slice& key) override;
  uint64_t NewId() override;
  void Prune() override;
  size_t TotalCharge() const override;

  size_t capacity() const { return capacity_; }

 private:
  struct Entry;
  using Entries = std::list<Entry*>;

  // Both collect in `dead` what nobody has any more: deleters are the user's, and run without the lock.
  void Remove(Entry* entry, Entries* dead);
  void Unref(Entry* entry, Entries* dead);
  static void Delete(const Entries& dead);

  const size_t capacity_;
  mutable std::mutex mutex_;
  size_t charge_ = 0;
  uint64_t last_id_ = 0;
  Entries unused_;
  std::unordered_map<std::string_view, Entry*> map_;
};

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_LRU_CACHE_H_
