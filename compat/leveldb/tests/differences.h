// Where Esker behind LevelDB's interface rightly differs from LevelDB. All that the tests state beside this list holds
// of both.

#ifndef ESKER_COMPAT_LEVELDB_TESTS_DIFFERENCES_H_
#define ESKER_COMPAT_LEVELDB_TESTS_DIFFERENCES_H_

#include <cstddef>

// Whether the library that was loaded is Esker's. main() has checked that it is the one that was to be tested.
bool OnEsker();

// Keys of Esker have a limit; one above it is InvalidArgument.
inline bool HasKeyLimit() { return OnEsker(); }
constexpr size_t kKeyLimit = 65536;

// Esker asks the operating system itself: an Env of the program's own is NotSupported.
inline bool RefusesOwnEnv() { return OnEsker(); }

// The name of a comparator is neither empty nor longer than 1024 bytes, nor begins with "esker.".
inline bool HasComparatorNameLimits() { return OnEsker(); }

// In a child that was forked while a DB is open all its calls fail. LevelDB's write over what the parent writes.
inline bool RefusesInForkedChild() { return OnEsker(); }

// Where a comparator throws, LevelDB's state is lost; Esker's call fails.
inline bool SurvivesThrowingComparator() { return OnEsker(); }

// In NewMemEnv() a store of Esker is a directory of its own, not files of the Env.
inline bool StoreIsFilesOfMemEnv() { return !OnEsker(); }

// LevelDB reads a snapshot of another DB as a number of its own.
inline bool KnowsForeignSnapshots() { return OnEsker(); }

// Esker makes the directories above a store too.
inline bool MakesParents() { return OnEsker(); }

// LevelDB "repairs" a directory that holds nothing, or is not there, to an empty store. Esker says that there is none.
inline bool RefusesToRepairNothing() { return OnEsker(); }

// Of a damaged batch LevelDB applies what stands before the damage, after it was logged; and it takes the header for
// granted.
inline bool ChecksWholeBatches() { return OnEsker(); }

// `leveldb.stats` ends in Esker's own statistics.
inline bool HasEskerStats() { return OnEsker(); }

// With paranoid_checks Esker reads and verifies the whole store when it is opened.
inline bool ParanoidOpenReadsAll() { return OnEsker(); }

// LevelDB's sizes of ranges are those of its tables; Esker's hold what is not in one yet too.
inline bool SizesHoldWhatIsInMemory() { return OnEsker(); }

// A store of Esker that is moved while it is open takes no more writes.
inline bool StopsWhenMoved() { return OnEsker(); }

// The tests read damaged files: which file they are to damage ends so.
inline const char* DataSuffix() { return OnEsker() ? ".tbl" : ".ldb"; }

#endif  // ESKER_COMPAT_LEVELDB_TESTS_DIFFERENCES_H_
