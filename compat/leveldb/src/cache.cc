// Cache: the base class, and the one that evicts what was used least recently.

#include "lru_cache.h"

#include <cassert>

namespace leveldb {

Cache::~Cache() = default;

struct LRUCache::Entry : Cache::Handle {
  std::string key;
  void* value;
  size_t charge;
  Deleter deleter;
  // Handles, and one more while it is in the map.
  size_t refs;
  bool in_map;
  // Its place in `unused_`, where it is there.
  Entries::iterator place;
};

LRUCache::~LRUCache() {
  Delist(this);
  for (const auto& [key, entry] : map_) {
    assert(entry->refs == 1);  // else the user still has a handle
    entry->deleter(entry->key, entry->value);
    delete entry;
  }
}

void LRUCache::Delete(const Entries& dead) {
  for (Entry* entry : dead) {
    entry->deleter(entry->key, entry->value);
    delete entry;
  }
}

void LRUCache::Unref(Entry* entry, Entries* dead) {
  if (--entry->refs == 0) {
    dead->push_back(entry);
  } else if (entry->refs == 1 && entry->in_map) {
    entry->place = unused_.insert(unused_.end(), entry);
  }
}

void LRUCache::Remove(Entry* entry, Entries* dead) {
  map_.erase(entry->key);
  if (entry->refs == 1) unused_.erase(entry->place);
  entry->in_map = false;
  charge_ -= entry->charge;
  Unref(entry, dead);
}

Cache::Handle* LRUCache::Insert(const Slice& key, void* value, size_t charge, Deleter deleter) {
  Entry* entry = new Entry;
  entry->key = key.ToString();
  entry->value = value;
  entry->charge = charge;
  entry->deleter = deleter;
  entry->refs = 1;
  entry->in_map = false;
  Entries dead;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (capacity_ > 0) {
      const auto older = map_.find(entry->key);
      if (older != map_.end()) Remove(older->second, &dead);
      map_.emplace(entry->key, entry);
      entry->in_map = true;
      entry->refs = 2;
      charge_ += charge;
      while (charge_ > capacity_ && !unused_.empty()) Remove(unused_.front(), &dead);
    }
  }
  Delete(dead);
  return entry;
}

Cache::Handle* LRUCache::Lookup(const Slice& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = map_.find(std::string_view(key.data(), key.size()));
  if (found == map_.end()) return nullptr;
  Entry* entry = found->second;
  if (entry->refs == 1) unused_.erase(entry->place);
  ++entry->refs;
  return entry;
}

void LRUCache::Release(Handle* handle) {
  Entries dead;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Unref(static_cast<Entry*>(handle), &dead);
  }
  Delete(dead);
}

void* LRUCache::Value(Handle* handle) { return static_cast<Entry*>(handle)->value; }

void LRUCache::Erase(const Slice& key) {
  Entries dead;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = map_.find(std::string_view(key.data(), key.size()));
    if (found != map_.end()) Remove(found->second, &dead);
  }
  Delete(dead);
}

uint64_t LRUCache::NewId() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ++last_id_;
}

void LRUCache::Prune() {
  Entries dead;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!unused_.empty()) Remove(unused_.front(), &dead);
  }
  Delete(dead);
}

size_t LRUCache::TotalCharge() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return charge_;
}

Cache* NewLRUCache(size_t capacity) { return new LRUCache(capacity); }

}  // namespace leveldb
