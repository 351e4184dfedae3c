package esker

// #include "glue.h"
import "C"

import "iter"

// loadChunk is how many bytes of entries go to the library at a time.
const loadChunk = 256 << 10

// BulkLoad loads entries in ascending order straight into tables, past the log. All of them appear at once, and durably, when it
// returns; on an error, none (where writes stop by it, the next open tells). It says how many there were. Values of keys that are there are replaced.
//
// The entries are asked for in the goroutine that called, while the library writes in a thread of its own. The iterator may use the
// store, also close it, which then ends the load with ErrClosed; when it panics nothing is loaded.
func (k *Keyspace) BulkLoad(entries iter.Seq2[[]byte, []byte]) (uint64, error) {
	return k.BulkLoadEntries(func(yield func(Entry, error) bool) {
		for key, value := range entries {
			if !yield(Entry{Key: key, Value: value}, nil) {
				return
			}
		}
	})
}

// BulkLoadEntries is BulkLoad of entries that may be an error, as those of a file, or of a scan: nothing is loaded then, and
// the error is returned as it is.
func (k *Keyspace) BulkLoadEntries(entries Entries) (uint64, error) {
	if !k.h.enter() {
		return 0, ErrClosed
	}
	feeder := C.glue_feeder_new()
	if feeder == nil {
		k.h.leave()
		return 0, noMemory()
	}
	var loaded C.glue_length
	done := make(chan struct{})
	go func() {
		defer close(done)
		loaded = C.glue_bulk_load(k.c, feeder)
	}()
	// From its first question on the load has a handle of its own.
	C.glue_feeder_wait(feeder)
	k.h.leave()

	abort := true
	defer C.glue_feeder_free(feeder)
	defer func() {
		if abort { // the iterator panicked, or ended its goroutine
			endLoad(feeder, done, true)
			failure(loaded.code, loaded.error)
		}
	}()
	err := feed(feeder, entries)
	abort = false
	endLoad(feeder, done, err != nil)
	if failed := failure(loaded.code, loaded.error); err == nil || failed == nil {
		return uint64(loaded.len), failed
	}
	return 0, err
}

func endLoad(feeder *C.glue_feeder, done chan struct{}, abort bool) {
	C.glue_feeder_end(feeder, C.bool(abort))
	<-done
}

func noMemory() error { return &Error{Code: Internal, Message: "no memory for a bulk load"} }

// feed pushes all entries, as long as the load takes them, and gives the first error among them, or that of a chunk that did not
// come to the load.
func feed(feeder *C.glue_feeder, entries Entries) error {
	var chunk []byte
	// Whether the load goes on; it has an error of its own when it has ended.
	push := func() (bool, error) {
		switch C.glue_feeder_push(feeder, bytesC(chunk), lenC(chunk)) {
		case C.GLUE_TAKEN:
			return true, nil
		case C.GLUE_NO_MEMORY:
			return false, noMemory()
		}
		return false, nil
	}
	for entry, err := range entries {
		switch {
		case err != nil:
			return err
		case len(entry.Key) > MaxKeyLen:
			return invalid("a key of %d bytes is over the limit of %d bytes", len(entry.Key), MaxKeyLen)
		case len(entry.Value) > MaxValueLen:
			return invalid("a value of %d bytes is over the limit of %d bytes; split it over several keys", len(entry.Value),
				MaxValueLen)
		}
		if chunk = appendEntry(chunk, entry.Key, entry.Value); len(chunk) < loadChunk {
			continue
		}
		if goesOn, err := push(); !goesOn {
			return err
		}
		chunk = chunk[:0]
	}
	if len(chunk) > 0 {
		_, err := push()
		return err
	}
	return nil
}
