package esker

// #include "glue.h"
import "C"

import "time"

// Stats is the shape of a store, and what it has done since it was opened.
type Stats struct {
	Sequence               uint64 // of the last commit
	Keyspaces              uint64
	Halted                 bool   // writes are stopped; the property "esker.halted" says why
	LogSegments            uint64 // segments of the log
	LogBytes               uint64 // set aside for them, and for files kept to make the next ones from
	BlobBytes              uint64 // of values that live in log segments
	BlobGarbageBytes       uint64 // that those segments take on the disk beside them
	PinnedBytes            uint64 // of files that nothing needs but a cursor or a loop
	TableBytes             uint64 // of table files
	DiskBytes              uint64 // that the directory takes on the disk
	MemoryBudget           uint64 // the memory setting
	MemoryUsed             uint64 // what indexes and buffers take of it
	BytesWritten           uint64 // of keys and values written by the program
	LogBytesWritten        uint64 // to the log
	CompactionBytesRead    uint64 // by merges
	CompactionBytesWritten uint64 // by flushes and merges
	Compactions            uint64 // flushes and merges
	LogSyncs               uint64
	WriteStall             time.Duration // that writers were made to wait for flushes
	Snapshots              uint64        // held
	OpenFiles              uint64
	Mappings               uint64 // of tables and log segments
}

// KeyspaceStats is the shape of a keyspace.
type KeyspaceStats struct {
	ID              uint64
	Entries         uint64 // in tables, all versions and deletes counted
	Tombstones      uint64 // deletes among them
	Runs            uint64 // sorted runs; a settled keyspace has one, or none, and perhaps some small ones, less than 7 % of it
	Tables          uint64 // in them
	TableBytes      uint64 // of those files
	RawBytes        uint64 // of keys and values in them before compression
	LZ4Tables       uint64 // that pack values with a dictionary for LZ4
	ZstdTables      uint64 // that pack values with a dictionary for Zstandard
	MemtableEntries uint64 // not in tables yet
	MemtableBytes   uint64 // of their keys and values
	BlobThreshold   uint64 // from how many bytes on a value stays in the log
}

// Stats gives the figures of the store; db.Keyspace.Stats gives those of its default keyspace.
func (db *DB) Stats() (Stats, error) {
	var s C.esker_stats
	err := db.do(func(e **C.esker_error) C.esker_code { return C.esker_db_stats(db.c, &s, C.sizeof_esker_stats, e) })
	return Stats{
		Sequence: uint64(s.sequence), Keyspaces: uint64(s.keyspaces), Halted: s.halted != 0,
		LogSegments: uint64(s.log_segments), LogBytes: uint64(s.log_bytes),
		BlobBytes: uint64(s.blob_bytes), BlobGarbageBytes: uint64(s.blob_garbage_bytes),
		PinnedBytes: uint64(s.pinned_bytes), TableBytes: uint64(s.table_bytes), DiskBytes: uint64(s.disk_bytes),
		MemoryBudget: uint64(s.memory_budget), MemoryUsed: uint64(s.memory_used),
		BytesWritten: uint64(s.bytes_written), LogBytesWritten: uint64(s.log_bytes_written),
		CompactionBytesRead: uint64(s.compaction_bytes_read), CompactionBytesWritten: uint64(s.compaction_bytes_written),
		Compactions: uint64(s.compactions), LogSyncs: uint64(s.log_syncs),
		WriteStall: time.Duration(s.write_stall_ns), Snapshots: uint64(s.snapshots),
		OpenFiles: uint64(s.open_files), Mappings: uint64(s.mappings),
	}, err
}

// Stats gives the figures of the keyspace, as it is now.
func (k *Keyspace) Stats() (KeyspaceStats, error) {
	if !k.h.enter() {
		return KeyspaceStats{}, ErrClosed
	}
	defer k.h.leave()
	var s C.esker_keyspace_stat
	var object *C.esker_error
	code := C.esker_keyspace_stats(k.c, &s, C.sizeof_esker_keyspace_stat, &object)
	return KeyspaceStats{
		ID: uint64(s.id), Entries: uint64(s.entries), Tombstones: uint64(s.tombstones), Runs: uint64(s.runs),
		Tables: uint64(s.tables), TableBytes: uint64(s.table_bytes), RawBytes: uint64(s.raw_bytes),
		LZ4Tables: uint64(s.lz4_tables), ZstdTables: uint64(s.zstd_tables),
		MemtableEntries: uint64(s.memtable_entries), MemtableBytes: uint64(s.memtable_bytes),
		BlobThreshold: uint64(s.blob_threshold),
	}, failure(code, object)
}
