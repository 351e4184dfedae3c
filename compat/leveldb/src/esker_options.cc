#include "esker_options.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "lru_cache.h"
#include "mem_env.h"

namespace leveldb {

namespace {

// Runs the user's comparator, for Esker's threads too: an exception ends here.
int Compare(void* state, const uint8_t* a, size_t a_len, const uint8_t* b, size_t b_len) {
  const Comparator* comparator = static_cast<const Comparator*>(state);
  try {
    const int order = comparator->Compare(Slice(reinterpret_cast<const char*>(a), a_len),
                                          Slice(reinterpret_cast<const char*>(b), b_len));
    // Any number means less, but one has a meaning of its own here.
    return order < 0 ? -1 : order > 0;
  } catch (...) {
    return ESKER_COMPARE_FAILED;
  }
}

// Esker stores names as text; LevelDB takes any bytes. What is no letter of ASCII is written as its number, and so is
// what such a number begins with, so that different names stay different. One that becomes too long is refused.
std::string StoredName(const char* name) {
  std::string stored;
  for (; *name != '\0'; name++) {
    const unsigned char c = static_cast<unsigned char>(*name);
    char number[5];
    std::snprintf(number, sizeof number, "\\x%02x", c);
    stored += c >= 0x20 && c < 0x7f && c != '\\' ? std::string(1, *name) : std::string(number);
  }
  return stored;
}

esker_code SetOrder(esker_options* to, const Comparator* comparator) {
  if (comparator == BytewiseComparator()) return esker_options_set_order(to, ESKER_ORDER_BYTEWISE);
  // The comparator is the program's, and lives longer than the store.
  const std::string name = StoredName(comparator->Name());
  const esker_comparator own = {name.c_str(), const_cast<Comparator*>(comparator), Compare, nullptr};
  // LevelDB does not flush when it is closed either. Whoever closes it may hold what the comparator waits for: the
  // lock of an interpreter, say.
  const esker_code code = esker_options_set_flush_on_close(to, false);
  return code != ESKER_OK ? code : esker_options_set_comparator(to, &own);
}

// Esker's blocks are whole pages, of a number that it allows.
size_t BlockSize(size_t wanted) {
  constexpr size_t kPage = 4096;
  constexpr size_t kMost = 65536;
  return (std::clamp(wanted, kPage, kMost) + kPage - 1) / kPage * kPage;
}

}  // namespace

uint64_t MemoryBudget(const Options& options) {
  constexpr uint64_t kLeast = 1 << 20;
  constexpr uint64_t kMost = uint64_t{1} << 40;
  constexpr uint64_t kLargestBuffer = 1 << 30;
  constexpr uint64_t kLevelDBCache = 8 << 20;
  if (options.write_buffer_size == Options().write_buffer_size && options.block_cache == nullptr) return 0;
  const LRUCache* cache = LRUCache::Ours(options.block_cache);
  // What a cache of the program's own may hold cannot be asked; it counts as LevelDB's.
  const uint64_t cached = cache != nullptr ? cache->capacity() : kLevelDBCache;
  // LevelDB takes no larger write buffer either; a cache without bounds is as large as memory gets.
  const uint64_t buffer = std::min<uint64_t>(options.write_buffer_size, kLargestBuffer);
  return std::clamp(std::min(cached, kMost) + buffer, kLeast, kMost);
}

Status TranslateOptions(const Options& options, EskerOptions* translated) {
  if (options.comparator == nullptr) return Status::InvalidArgument("options.comparator", "a null pointer");
  translated->reset(esker_options_new());
  esker_options* to = translated->get();
  esker_code code = SetOrder(to, options.comparator);
  if (code != ESKER_OK) {
    return Status::InvalidArgument(options.comparator->Name(), "the comparator's name is not one that Esker can store");
  }
  const auto also = [&code](esker_code next) {
    if (code == ESKER_OK) code = next;
  };
  also(esker_options_set_create_if_missing(to, options.create_if_missing));
  also(esker_options_set_error_if_exists(to, options.error_if_exists));
  also(esker_options_set_paranoid_checks(to, options.paranoid_checks));
  const bool packed = options.compression != kNoCompression;
  also(esker_options_set_compression(to, packed ? ESKER_COMPRESSION_LZ4 : ESKER_COMPRESSION_NONE));
  also(esker_options_set_block_size(to, BlockSize(options.block_size)));
  const uint64_t memory = MemoryBudget(options);
  if (memory != 0) also(esker_options_set_memory(to, memory));
  return code == ESKER_OK ? Status::OK() : Status::InvalidArgument("options", esker_code_name(code));
}

Status StoreDirectory(const Options& options, const std::string& name, std::string* directory) {
  // C programs pass null for the default.
  if (options.env == nullptr || options.env == Env::Default()) {
    *directory = name;
    return Status::OK();
  }
  if (MemEnv* memory = MemEnv::Ours(options.env)) return memory->StoreDirectory(name, directory);
  return Status::NotSupported(name,
                              "options.env is an environment of the program's own, and an Esker store asks the "
                              "operating system itself; leave Env::Default(), or take NewMemEnv()");
}

}  // namespace leveldb
