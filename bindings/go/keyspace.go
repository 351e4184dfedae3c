package esker

// #include "glue.h"
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Reader is what reads: a DB (its default keyspace), a Keyspace, and a View.
type Reader interface {
	Get(key []byte) ([]byte, error)
	Has(key []byte) (bool, error)
	MultiGet(keys ...[]byte) ([][]byte, error)
	All() Entries
	Range(from, to []byte) Entries
	Prefix(prefix []byte) Entries
	Backward(from, to []byte) Entries
	Scan(Scan) Entries
	Cursor() (*Cursor, error)
}

var _, _, _ Reader = (*DB)(nil), (*Keyspace)(nil), (*View)(nil)

// reader is a keyspace as it is now, or as a snapshot sees it.
type reader struct {
	h          *handle
	c          *C.esker_keyspace
	descending bool
	guess      atomic.Int64 // how long the value was that was read last
}

// Keyspace is a named map in a store. Any number of goroutines use it.
type Keyspace struct {
	reader
	db *DB
}

// View is a keyspace as a snapshot sees it. Any number of goroutines use it.
type View struct {
	reader
	db *DB
}

func newKeyspace(db *DB, c *C.esker_keyspace) (*Keyspace, error) {
	ks := &Keyspace{db: db}
	if err := ks.init(c); err != nil {
		return nil, err
	}
	// The garbage collector closes what the program forgot.
	runtime.AddCleanup(ks, (*handle).close, ks.h)
	return ks, nil
}

// init takes a handle of the library's, also when it fails.
func (r *reader) init(c *C.esker_keyspace) error {
	var name C.esker_string
	var object *C.esker_error
	code := C.esker_keyspace_comparator(c, &name, &object)
	if err := failure(code, object); err != nil {
		C.esker_keyspace_close(&c)
		return err
	}
	r.c, r.descending = c, takeString(&name) == "esker.reverse"
	r.h = newHandle(func() { C.esker_keyspace_close(&c) })
	return nil
}

// Close closes the handle, once no call uses it any more; the keyspace stays. Calls that come later give ErrClosed. The default
// keyspace of a DB is closed with that.
func (k *Keyspace) Close() error {
	if k.db.Keyspace != k {
		k.h.close()
	}
	return nil
}

// Close closes the view, once no call uses it any more. Calls that come later give ErrClosed.
func (v *View) Close() error {
	v.h.close()
	return nil
}

// Get copies the value of a key; ErrNotFound when it has none.
func (r *reader) Get(key []byte) ([]byte, error) {
	if !r.h.enter() {
		return nil, ErrClosed
	}
	defer r.h.leave()
	// Values of a keyspace are often of one length: then one call reads into memory that fits.
	room := min(max(r.guess.Load(), 32), 64<<10)
	for {
		value := make([]byte, room)
		got := C.glue_get_into(r.c, bytesC(key), lenC(key), bytesC(value), lenC(value))
		if got.code != C.ESKER_OK {
			return nil, failure(got.code, got.error)
		}
		n := int64(got.len)
		if n != r.guess.Load() {
			r.guess.Store(n)
		}
		if n > room {
			room = n // too long, or meanwhile another one
			continue
		}
		if n < room/2 {
			return append(make([]byte, 0, n), value[:n]...), nil
		}
		return value[:n:n], nil
	}
}

// Has says whether a key has a value. Cheaper than Get for large values.
func (r *reader) Has(key []byte) (bool, error) {
	if !r.h.enter() {
		return false, ErrClosed
	}
	defer r.h.leave()
	got := C.glue_contains(r.c, bytesC(key), lenC(key))
	if got.code == C.ESKER_NOT_FOUND {
		return false, nil
	}
	return got.code == C.ESKER_OK, failure(got.code, got.error)
}

// MultiGet copies the values of several keys as of one moment, faster than one Get after the other; nil where a key has none.
func (r *reader) MultiGet(keys ...[]byte) ([][]byte, error) {
	if !r.h.enter() {
		return nil, ErrClosed
	}
	defer r.h.leave()
	lens := make([]C.size_t, len(keys))
	var packed []byte
	for i, key := range keys {
		lens[i] = lenC(key)
		packed = append(packed, key...)
	}
	count := C.size_t(len(keys))
	got := C.glue_multi_get(r.c, count, bytesC(packed), unsafe.SliceData(lens))
	if got.code != C.ESKER_OK {
		return nil, failure(got.code, got.error)
	}
	defer C.glue_values_free(got.values, count)
	values := make([][]byte, len(keys))
	for i, value := range unsafe.Slice(got.values, count) {
		if value.data != nil {
			values[i] = bytesGo(value.data, value.len)
		}
	}
	return values, nil
}

// Put gives a key a value, with the store's durability.
func (k *Keyspace) Put(key, value []byte) error { return k.PutWith(key, value, Default) }

// PutWith gives a key a value, with a durability of its own.
func (k *Keyspace) PutWith(key, value []byte, durability Durability) error {
	if !k.h.enter() {
		return ErrClosed
	}
	defer k.h.leave()
	r := C.glue_put(k.c, bytesC(key), lenC(key), bytesC(value), lenC(value), C.esker_durability(durability))
	return failure(r.code, r.error)
}

// Delete takes the value of a key away, if it has one, with the store's durability.
func (k *Keyspace) Delete(key []byte) error { return k.DeleteWith(key, Default) }

// DeleteWith takes the value of a key away, with a durability of its own.
func (k *Keyspace) DeleteWith(key []byte, durability Durability) error {
	if !k.h.enter() {
		return ErrClosed
	}
	defer k.h.leave()
	r := C.glue_delete(k.c, bytesC(key), lenC(key), C.esker_durability(durability))
	return failure(r.code, r.error)
}

// CompactRange rewrites the tables that hold keys of a range into one run, without what is deleted or overwritten there. nil is
// no bound.
func (k *Keyspace) CompactRange(from, to []byte) error {
	if !k.h.enter() {
		return ErrClosed
	}
	defer k.h.leave()
	r := C.glue_compact_range(k.c, bytesC(from), lenC(from), bytesC(to), lenC(to))
	return failure(r.code, r.error)
}

// ApproximateSize is about how many bytes of files the keys of a range take, what is not flushed yet included. nil is no bound.
func (k *Keyspace) ApproximateSize(from, to []byte) (uint64, error) {
	if !k.h.enter() {
		return 0, ErrClosed
	}
	defer k.h.leave()
	got := C.glue_approximate_size(k.c, bytesC(from), lenC(from), bytesC(to), lenC(to))
	return uint64(got.size), failure(got.code, got.error)
}
