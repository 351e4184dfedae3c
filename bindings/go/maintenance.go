package esker

// #include "glue.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"sync/atomic"
	"unsafe"
)

// Verify reads and checks the tables of the open store and what they refer to; its log, and large values that were read before, it does not check again. nil when it is sound; ErrCorruption when it is not, with the first problem.
// The report is text for people, a line for each problem. When ctx is done it stops, and returns ctx's error.
func (db *DB) Verify(ctx context.Context) (report string, err error) {
	return verify(ctx, func(stop *C.int32_t, report *C.esker_string) error {
		if !db.h.enter() {
			return ErrClosed
		}
		defer db.h.leave()
		r := C.glue_db_verify(db.c, stop, report)
		return failure(r.code, r.error)
	})
}

// Verify is DB.Verify of a store that is not open for writing, however damaged it is. It changes nothing.
func Verify(ctx context.Context, path string) (report string, err error) {
	p, err := zeroTerminated("path", path)
	if err != nil {
		return "", err
	}
	defer C.free(unsafe.Pointer(p))
	return verify(ctx, func(stop *C.int32_t, report *C.esker_string) error {
		r := C.glue_verify(p, nil, stop, report)
		return failure(r.code, r.error)
	})
}

// verify runs a verification, which looks at a flag that is set when ctx is done.
func verify(ctx context.Context, run func(*C.int32_t, *C.esker_string) error) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	flag := (*C.int32_t)(C.calloc(1, C.sizeof_int32_t))
	defer C.free(unsafe.Pointer(flag))
	set := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		atomic.StoreInt32((*int32)(unsafe.Pointer(flag)), 1)
		close(set)
	})
	var text C.esker_string
	err := run(flag, &text)
	if !cancel() {
		<-set // it still writes to the flag
		if err != nil && context.Cause(ctx) != nil && Aborted == codeOf(err) {
			err = context.Cause(ctx)
		}
	}
	return takeString(&text), err
}

func codeOf(err error) Code {
	if e, ok := err.(*Error); ok {
		return e.Code
	}
	return 0
}

// Repair saves what is intact of a damaged store that is not open, and makes it open again; a sound one stays as it is. Of
// opts, which may be nil, it takes block size and compression for what it writes, and the order of the default keyspace, for
// when the store does not know it any more.
//
// The report is text for people: it begins with "sound" or "repaired", and has a line for each problem and each loss. It is no
// error when something was lost: damaged files are kept under lost/ in the store.
func Repair(path string, opts *Options) (report string, err error) {
	p, err := zeroTerminated("path", path)
	if err != nil {
		return "", err
	}
	defer C.free(unsafe.Pointer(p))
	options, err := opts.inC()
	if err != nil {
		return "", err
	}
	defer C.esker_options_free(&options)
	var text C.esker_string
	var object *C.esker_error
	code := C.esker_repair(p, options, &text, &object)
	return takeString(&text), failure(code, object)
}

// Destroy removes the store in the directory path, which must not be open: all its files, and the directory when nothing else is in it.
// It is no error when nothing is there.
func Destroy(path string) error {
	p, err := zeroTerminated("path", path)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(p))
	var object *C.esker_error
	code := C.esker_destroy(p, &object)
	return failure(code, object)
}
