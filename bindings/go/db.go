package esker

// #include "glue.h"
// #include <stdlib.h>
import "C"

import (
	"sync"
	"unsafe"
)

// DB is an open store. Any number of goroutines use it.
//
// It has the methods of its default keyspace, which is also there as db.Keyspace.
type DB struct {
	*Keyspace
	h        *handle
	c        *C.esker_db
	closing  sync.Once
	closeErr error
}

// Open opens the store in the directory path, and makes it when it is missing. opts may be nil.
//
// The store has to be closed. One process at a time has it open; ErrLocked says that another does, or another DB.
func Open(path string, opts *Options) (*DB, error) {
	p, err := zeroTerminated("path", path)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(p))
	options, err := opts.inC()
	if err != nil {
		return nil, err
	}
	defer C.esker_options_free(&options)
	db := &DB{}
	var object *C.esker_error
	code := C.esker_db_open(p, options, &db.c, &object)
	if err := failure(code, object); err != nil {
		return nil, err
	}
	db.h = newHandle(func() {
		var object *C.esker_error
		db.closeErr = failure(C.esker_db_close(&db.c, &object), object)
	})
	if db.Keyspace, err = db.openKeyspace(nil); err != nil {
		db.h.close()
		return nil, err
	}
	return db, nil
}

// Close flushes (see Options.NoFlushOnClose) and closes the store, once the calls on the DB that are under way have come to an end. Calls that come later
// give ErrClosed, those on its keyspaces, views and snapshots too; closing again gives what the first time gave.
//
// A cursor that is open, or a loop over a scan, goes on with what it saw, and keeps the directory locked until it ends; so does
// an iter.Pull2 of one until it is stopped.
func (db *DB) Close() error {
	db.closing.Do(func() {
		db.h.close()
		<-db.h.gone
		db.Keyspace.h.close()
	})
	return db.closeErr
}

// do makes a call on the store, if it is open.
func (db *DB) do(call func(object **C.esker_error) C.esker_code) error {
	if !db.h.enter() {
		return ErrClosed
	}
	defer db.h.leave()
	var object *C.esker_error
	code := call(&object)
	return failure(code, object)
}

// Flush writes everything into tables; it returns when that is durable.
func (db *DB) Flush() error {
	return db.do(func(e **C.esker_error) C.esker_code { return C.esker_db_flush(db.c, e) })
}

// Sync makes everything written so far durable.
func (db *DB) Sync() error {
	return db.do(func(e **C.esker_error) C.esker_code { return C.esker_db_sync(db.c, e) })
}

// WaitForCompactions flushes, and merges what is in tables then until nothing is left to do about it. What is written
// meanwhile is not waited for.
func (db *DB) WaitForCompactions() error {
	return db.do(func(e **C.esker_error) C.esker_code { return C.esker_db_wait_for_compactions(db.c, e) })
}

// Resume goes on after an error that stopped writes (ErrHalted), once its cause is removed.
func (db *DB) Resume() error {
	return db.do(func(e **C.esker_error) C.esker_code { return C.esker_db_resume(db.c, e) })
}

// Checkpoint makes a second store in the directory dir, which must not exist, that holds what this one holds now. Files that
// never change are shared where the file system can.
func (db *DB) Checkpoint(dir string) error {
	p, err := zeroTerminated("path", dir)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(p))
	return db.do(func(e **C.esker_error) C.esker_code { return C.esker_db_checkpoint(db.c, p, e) })
}

// Property is a property of the store as text: "esker.stats", "esker.levels", "esker.sequence", "esker.disk-bytes",
// "esker.memory-used", "esker.write-amplification", "esker.halted". ErrNotFound when there is none of that name.
func (db *DB) Property(name string) (string, error) {
	n, err := zeroTerminated("property", name)
	if err != nil {
		return "", err
	}
	defer C.free(unsafe.Pointer(n))
	var text C.esker_string
	err = db.do(func(e **C.esker_error) C.esker_code { return C.esker_db_property(db.c, n, &text, e) })
	if err != nil {
		return "", err
	}
	return takeString(&text), nil
}

// Keyspaces gives the names of all keyspaces, "default" first, then in order of creation.
func (db *DB) Keyspaces() ([]string, error) {
	var texts *C.esker_string
	var count C.size_t
	err := db.do(func(e **C.esker_error) C.esker_code { return C.esker_db_keyspaces(db.c, &texts, &count, e) })
	if err != nil {
		return nil, err
	}
	defer C.esker_strings_free(&texts, count)
	names := make([]string, 0, count)
	for _, text := range unsafe.Slice(texts, count) {
		names = append(names, C.GoStringN(text.data, C.int(text.len)))
	}
	return names, nil
}

// OpenKeyspace opens the keyspace of that name; ErrKeyspace when there is none. It may be closed, and is closed with the store.
func (db *DB) OpenKeyspace(name string) (*Keyspace, error) {
	n, err := zeroTerminated("keyspace", name)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(n))
	return db.openKeyspace(n)
}

func (db *DB) openKeyspace(name *C.char) (*Keyspace, error) {
	var ks *C.esker_keyspace
	err := db.do(func(e **C.esker_error) C.esker_code { return C.esker_keyspace_open(db.c, name, &ks, e) })
	if err != nil {
		return nil, err
	}
	return newKeyspace(db, ks)
}

// CreateKeyspace makes a keyspace, durable on return, and opens it. The name has 1 to 255 bytes of UTF-8; opts may be nil.
// ErrKeyspace when one of that name is there.
func (db *DB) CreateKeyspace(name string, opts *KeyspaceOptions) (*Keyspace, error) {
	n, err := zeroTerminated("keyspace", name)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(n))
	options, err := opts.inC()
	if err != nil {
		return nil, err
	}
	defer C.esker_keyspace_options_free(&options)
	var ks *C.esker_keyspace
	err = db.do(func(e **C.esker_error) C.esker_code { return C.esker_keyspace_create(db.c, n, options, &ks, e) })
	if err != nil {
		return nil, err
	}
	return newKeyspace(db, ks)
}

// DropKeyspace drops a keyspace and all its data, durable on return. Calls on it give ErrKeyspace from then on. The default
// keyspace stays.
func (db *DB) DropKeyspace(name string) error {
	n, err := zeroTerminated("keyspace", name)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(n))
	return db.do(func(e **C.esker_error) C.esker_code { return C.esker_keyspace_drop(db.c, n, e) })
}
