package esker

// #include "glue.h"
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// Cursor walks over a keyspace, as it was when the cursor was opened, and goes where it is told. For a walk from one end to the
// other a range loop over a scan is faster: it fetches many entries with one call.
//
// A new cursor is on no entry. Moves say whether they came to one; where they did not, Err says whether that is an error.
// Goroutines that use one cursor wait for each other.
type Cursor struct {
	lock       sync.Mutex
	c          *C.esker_cursor
	key, value []byte
	valid      bool
	err        error
	cleanup    runtime.Cleanup
}

// Cursor opens a cursor. It keeps what it walks over, and the directory's lock, until it is closed.
func (r *reader) Cursor() (*Cursor, error) { return r.cursor(false) }

// KeysCursor opens a cursor that fetches no values.
func (r *reader) KeysCursor() (*Cursor, error) { return r.cursor(true) }

func (r *reader) cursor(keysOnly bool) (*Cursor, error) {
	if !r.h.enter() {
		return nil, ErrClosed
	}
	defer r.h.leave()
	cursor := &Cursor{}
	var object *C.esker_error
	code := C.esker_cursor_open(r.c, C.bool(keysOnly), &cursor.c, &object)
	if err := failure(code, object); err != nil {
		return nil, err
	}
	closeC := func(c *C.esker_cursor) { C.esker_cursor_close(&c) }
	cursor.cleanup = runtime.AddCleanup(cursor, closeC, cursor.c)
	return cursor, nil
}

// Close closes the cursor. Its moves come to nothing from then on, and Err is ErrClosed.
func (c *Cursor) Close() error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.c != nil {
		c.cleanup.Stop()
		C.esker_cursor_close(&c.c)
		c.valid, c.err = false, ErrClosed
	}
	return nil
}

// First goes to the first entry.
func (c *Cursor) First() bool { return c.move(C.GLUE_FIRST, nil) }

// Last goes to the last entry.
func (c *Cursor) Last() bool { return c.move(C.GLUE_LAST, nil) }

// Seek goes to the first entry at or after a key.
func (c *Cursor) Seek(key []byte) bool { return c.move(C.GLUE_SEEK, key) }

// SeekForPrev goes to the last entry at or before a key.
func (c *Cursor) SeekForPrev(key []byte) bool { return c.move(C.GLUE_SEEK_FOR_PREV, key) }

// Next goes one entry on.
func (c *Cursor) Next() bool { return c.move(C.GLUE_NEXT, nil) }

// Prev goes one entry back.
func (c *Cursor) Prev() bool { return c.move(C.GLUE_PREV, nil) }

func (c *Cursor) move(where C.int, key []byte) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.c == nil {
		return false
	}
	got := C.glue_move(c.c, where, bytesC(key), lenC(key))
	c.valid, c.err = got.code == C.ESKER_OK, nil
	switch {
	case c.valid:
		keyLen, valueLen := got.entry.key_len, got.entry.value_len
		both := make([]byte, 0, keyLen+valueLen)
		both = append(both, unsafe.Slice((*byte)(got.entry.key), keyLen)...)
		both = append(both, unsafe.Slice((*byte)(got.entry.value), valueLen)...)
		c.key, c.value = both[:keyLen:keyLen], both[keyLen:]
	case got.code != C.ESKER_NOT_FOUND:
		c.err = failure(got.code, got.error)
	}
	return c.valid
}

// Valid says whether the cursor is on an entry.
func (c *Cursor) Valid() bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.valid
}

// Err is the error of the last move, if it had one.
func (c *Cursor) Err() error {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.err
}

// Key is that of the entry, which may be kept; nil when the cursor is on none.
func (c *Cursor) Key() []byte {
	c.lock.Lock()
	defer c.lock.Unlock()
	if !c.valid {
		return nil
	}
	return c.key
}

// Value is that of the entry, which may be kept; nil when the cursor is on none.
func (c *Cursor) Value() []byte {
	c.lock.Lock()
	defer c.lock.Unlock()
	if !c.valid {
		return nil
	}
	return c.value
}
