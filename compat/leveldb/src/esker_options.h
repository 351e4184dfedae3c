// From LevelDB's Options to Esker's.

#ifndef ESKER_COMPAT_LEVELDB_ESKER_OPTIONS_H_
#define ESKER_COMPAT_LEVELDB_ESKER_OPTIONS_H_

#include <memory>
#include <string>

#include "esker.h"
#include "leveldb/options.h"
#include "leveldb/status.h"

namespace leveldb {

struct FreeEskerOptions {
  void operator()(esker_options* options) const { esker_options_free(&options); }
};
using EskerOptions = std::unique_ptr<esker_options, FreeEskerOptions>;

// What `options` say of opening, repairing and looking at a store.
Status TranslateOptions(const Options& options, EskerOptions* translated);

// The memory that `write_buffer_size` and `block_cache` allow together, in bytes; 0 where both are LevelDB's defaults,
// which say nothing of what the program wants: then Esker's default holds.
uint64_t MemoryBudget(const Options& options);

// The directory in which the store called `name` is: `name`, or one of the environment's in memory. NotSupported for
// an environment of the program's own.
Status StoreDirectory(const Options& options, const std::string& name, std::string* directory);

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_ESKER_OPTIONS_H_
