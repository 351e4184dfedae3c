package esker

// #include "glue.h"
import "C"

import "runtime"

// Snapshot is the whole store, all keyspaces, as it was at one moment. Any number of goroutines use it.
//
// What it sees takes room in the store until it is closed, and the views of it too.
type Snapshot struct {
	h *handle
	c *C.esker_snapshot
}

// Snapshot takes a snapshot of the store as it is now.
func (db *DB) Snapshot() (*Snapshot, error) {
	var c *C.esker_snapshot
	err := db.do(func(e **C.esker_error) C.esker_code { return C.esker_snapshot_open(db.c, &c, e) })
	if err != nil {
		return nil, err
	}
	s := &Snapshot{h: newHandle(func() { C.esker_snapshot_close(&c) }), c: c}
	runtime.AddCleanup(s, (*handle).close, s.h)
	return s, nil
}

// Sequence is the number of the last commit that the snapshot sees; 0 once it is closed.
func (s *Snapshot) Sequence() uint64 {
	if !s.h.enter() {
		return 0
	}
	defer s.h.leave()
	return uint64(C.esker_snapshot_sequence(s.c))
}

// Close closes the snapshot. Views of it keep what they see.
func (s *Snapshot) Close() error {
	s.h.close()
	return nil
}

// At opens the keyspace as a snapshot of its store sees it.
func (k *Keyspace) At(s *Snapshot) (*View, error) {
	if !k.h.enter() {
		return nil, ErrClosed
	}
	defer k.h.leave()
	if !s.h.enter() {
		return nil, ErrClosed
	}
	defer s.h.leave()
	var c *C.esker_keyspace
	var object *C.esker_error
	code := C.esker_keyspace_at(k.c, s.c, &c, &object)
	if err := failure(code, object); err != nil {
		return nil, err
	}
	v := &View{db: k.db}
	if err := v.init(c); err != nil {
		return nil, err
	}
	runtime.AddCleanup(v, (*handle).close, v.h)
	return v, nil
}
