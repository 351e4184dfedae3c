// An iterator over a store: one cursor, and the entry that it stands on.

#ifndef ESKER_COMPAT_LEVELDB_DB_ITERATOR_H_
#define ESKER_COMPAT_LEVELDB_DB_ITERATOR_H_

#include "esker.h"
#include "leveldb/iterator.h"

namespace leveldb {

// An iterator over `source` as it is now; one that has but an error, where there is one.
Iterator* NewDBIterator(const esker_keyspace* source);

}  // namespace leveldb

#endif  // ESKER_COMPAT_LEVELDB_DB_ITERATOR_H_
