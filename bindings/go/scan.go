package esker

// #include "glue.h"
import "C"

import (
	"bytes"
	"encoding/binary"
	"iter"
	"unsafe"
)

// Entry is a key and its value. Both are the program's to keep; while it does, it keeps the chunk of up to 256 KiB that they
// were read in.
type Entry struct {
	Key, Value []byte
}

// Entries is a walk over entries, for a range loop. It sees the keyspace as it was when the loop began, whatever is written
// meanwhile. After an error, which comes with an empty entry, it ends.
//
//	for entry, err := range db.Prefix([]byte("tree/")) {
//		if err != nil {
//			return err
//		}
//		fmt.Printf("%s = %s\n", entry.Key, entry.Value)
//	}
//
// The loop may be left at any time, and may use the store, also write to it and close it. An iter.Pull2 of it ends with its last
// entry or its stop; until then it keeps the directory locked, also after DB.Close, and nothing but stop ends one that was
// forgotten.
type Entries = iter.Seq2[Entry, error]

// Scan says which entries to walk over, and how. The zero value is all of them in order.
type Scan struct {
	From     []byte // the first key, in the keyspace's order; nil is no bound
	To       []byte // the first key that is out again; nil is no bound
	Prefix   []byte // only keys that begin so
	Backward bool   // from the end to the beginning
	KeysOnly bool   // fetch no values
}

// All walks over all entries.
func (r *reader) All() Entries { return r.Scan(Scan{}) }

// Range walks over the entries from a key on and before another, in the keyspace's order. nil is no bound.
func (r *reader) Range(from, to []byte) Entries { return r.Scan(Scan{From: from, To: to}) }

// Prefix walks over the entries whose keys begin so.
func (r *reader) Prefix(prefix []byte) Entries { return r.Scan(Scan{Prefix: prefix}) }

// Backward walks over the entries of Range from the end to the beginning.
func (r *reader) Backward(from, to []byte) Entries {
	return r.Scan(Scan{From: from, To: to, Backward: true})
}

// Chunks in which entries are copied: few bytes for a short walk, and then so many that the calls cost nothing beside the bytes.
const (
	firstChunk = 4 << 10
	lastChunk  = 256 << 10
)

// Scan walks over the entries that s asks for.
func (r *reader) Scan(s Scan) Entries {
	bounds := s.bounds(r.descending)
	return func(yield func(Entry, error) bool) {
		cursor, err := r.openScan(s, bounds)
		if err != nil || cursor == nil {
			if err != nil {
				yield(Entry{}, err)
			}
			return
		}
		defer C.esker_cursor_close(&cursor)
		for room := firstChunk; ; room = min(room*2, lastChunk) {
			chunk, done, err := readChunk(cursor, bounds, s.Backward, room)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for len(chunk) > 0 {
				var entry Entry
				entry, chunk = nextEntry(chunk)
				switch bounds.place(entry.Key) {
				case before:
					continue
				case behind:
					return
				}
				if !yield(entry, nil) {
					return
				}
			}
			if done {
				return
			}
		}
	}
}

// openScan opens a cursor where the walk begins; nil when nothing is there.
func (r *reader) openScan(s Scan, b bounds) (*C.esker_cursor, error) {
	if !r.h.enter() {
		return nil, ErrClosed
	}
	defer r.h.leave()
	where := C.int(C.GLUE_SEEK)
	start := b.high
	if b.ascending {
		start = b.low
	}
	switch {
	case start.is && s.Backward:
		where = C.GLUE_SEEK_FOR_PREV
	case !start.is && s.Backward:
		where = C.GLUE_LAST
	case !start.is:
		where = C.GLUE_FIRST
	}
	got := C.glue_scan(r.c, C.bool(s.KeysOnly), where, bytesC(start.key), lenC(start.key))
	if got.code == C.ESKER_NOT_FOUND {
		return nil, nil
	}
	return got.cursor, failure(got.code, got.error)
}

// readChunk copies entries, as many as there is room for. One that there is too little room for is copied if it lies inside.
func readChunk(cursor *C.esker_cursor, b bounds, backward bool, room int) (chunk []byte, done bool, err error) {
	for {
		chunk = make([]byte, room)
		got := C.glue_read(cursor, C.bool(backward), bytesC(chunk), lenC(chunk))
		switch {
		case got.code == C.ESKER_NOT_FOUND:
			return nil, true, nil
		case got.code != C.ESKER_OK:
			return nil, false, failure(got.code, got.error)
		case got.count > 0 || bool(got.done):
			return chunk[:got.used:got.used], bool(got.done), nil
		}
		switch b.place(unsafe.Slice((*byte)(got.key), got.key_len)) {
		case inside:
			room = int(got.used)
		case behind:
			return nil, true, nil
		case before:
			where := C.int(C.GLUE_NEXT)
			if backward {
				where = C.GLUE_PREV
			}
			switch moved := C.glue_move(cursor, where, nil, 0); moved.code {
			case C.ESKER_OK:
			case C.ESKER_NOT_FOUND:
				return nil, true, nil
			default:
				return nil, false, failure(moved.code, moved.error)
			}
		}
	}
}

// nextEntry takes an entry off a chunk. Whoever appends to its key or value gets other memory.
func nextEntry(chunk []byte) (Entry, []byte) {
	keyEnd := 8 + int(binary.NativeEndian.Uint32(chunk))
	end := keyEnd + int(binary.NativeEndian.Uint32(chunk[4:]))
	return Entry{Key: chunk[8:keyEnd:keyEnd], Value: chunk[keyEnd:end:end]}, chunk[end:]
}

// bound is an end of a walk, if it has one.
type bound struct {
	key      []byte
	is, open bool
}

// bounds are both ends by the bytes of the keys, whatever the keyspace's order is, and whether the walk goes up.
type bounds struct {
	low, high bound
	ascending bool
}

// bounds keeps no slice of the program's, which may write into them before the walk ends.
func (s Scan) bounds(descending bool) bounds {
	s.From, s.To, s.Prefix = bytes.Clone(s.From), bytes.Clone(s.To), bytes.Clone(s.Prefix)
	b := bounds{ascending: descending == s.Backward}
	from := bound{key: s.From, is: s.From != nil}
	to := bound{key: s.To, is: s.To != nil, open: true}
	b.low, b.high = from, to
	if descending {
		b.low, b.high = to, from
	}
	if len(s.Prefix) == 0 {
		return b
	}
	if !b.low.is || bytes.Compare(b.low.key, s.Prefix) < 0 {
		b.low = bound{key: s.Prefix, is: true}
	}
	if end := behindPrefix(s.Prefix); end != nil && (!b.high.is || bytes.Compare(b.high.key, end) >= 0) {
		b.high = bound{key: end, is: true, open: true}
	}
	return b
}

// behindPrefix is the lowest key above all that begin with a prefix; nil when there is none.
func behindPrefix(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}

const (
	before = iota
	inside
	behind
)

// place is where a key lies for the walk.
func (b bounds) place(key []byte) int {
	isLow, isHigh := false, false
	if b.low.is {
		order := bytes.Compare(key, b.low.key)
		isLow = order < 0 || order == 0 && b.low.open
	}
	if b.high.is {
		order := bytes.Compare(key, b.high.key)
		isHigh = order > 0 || order == 0 && b.high.open
	}
	switch {
	case b.ascending && isHigh || !b.ascending && isLow:
		return behind
	case isLow || isHigh:
		return before
	}
	return inside
}
