// An iterator over all entries of a table: over its index, and in it over one block after another.

#ifndef ESKER_COMPAT_LEVELDB_TABLE_ITERATOR_H_
#define ESKER_COMPAT_LEVELDB_TABLE_ITERATOR_H_

#include "leveldb/iterator.h"
#include "leveldb/options.h"

namespace leveldb {

// An iterator over the block that a value of the index names.
using OpenBlock = Iterator* (*)(void* table, const ReadOptions& options, const Slice& handle);

// Takes `index`.
Iterator* NewTableIterator(Iterator* index, OpenBlock open, void* table, const ReadOptions& options);

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_TABLE_ITERATOR_H_
