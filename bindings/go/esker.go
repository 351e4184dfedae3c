// Package esker stores keys and values in a directory: an embedded, ordered, persistent key-value store, written in Rust and
// reached through its C interface (cgo).
//
// A store is opened with [Open] and closed with [DB.Close]. Keys and values are any bytes, keys up to 64 KiB and values up
// to 1 GiB; both may be empty, and nil is the same as empty. Keys are kept in the order of their bytes, or in the reverse.
// A store has a default keyspace, which a [DB] has the methods of, and others by name.
//
// All types but [Batch] may be used by any number of goroutines at a time, and closed while others use them: calls that come
// too late give [ErrClosed]. What the library lends stays in C; what this package returns is the program's own memory.
package esker

// #include "glue.h"
// #cgo noescape glue_get_into
// #cgo nocallback glue_get_into
// #cgo noescape glue_contains
// #cgo nocallback glue_contains
// #cgo noescape glue_put
// #cgo nocallback glue_put
// #cgo noescape glue_delete
// #cgo nocallback glue_delete
// #cgo noescape glue_compact_range
// #cgo nocallback glue_compact_range
// #cgo noescape glue_approximate_size
// #cgo nocallback glue_approximate_size
// #cgo noescape glue_multi_get
// #cgo nocallback glue_multi_get
// #cgo noescape glue_write
// #cgo nocallback glue_write
// #cgo noescape glue_scan
// #cgo nocallback glue_scan
// #cgo noescape glue_read
// #cgo nocallback glue_read
// #cgo noescape glue_move
// #cgo nocallback glue_move
// #cgo noescape glue_feeder_push
// #cgo nocallback glue_feeder_push
import "C"

import "unsafe"

const (
	// MaxKeyLen is how many bytes a key may have.
	MaxKeyLen = 64 << 10
	// MaxValueLen is how many bytes a value may have.
	MaxValueLen = 1 << 30
)

// Version is that of the library, as "0.1.0".
func Version() string { return C.GoString(C.esker_version()) }

// bytesC is where bytes lie, for the length of one call.
func bytesC(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(b)) }

func lenC(b []byte) C.size_t { return C.size_t(len(b)) }

// bytesGo copies bytes of the library's; never nil.
func bytesGo(at *C.uint8_t, n C.size_t) []byte {
	return append(make([]byte, 0, n), unsafe.Slice((*byte)(at), n)...)
}
