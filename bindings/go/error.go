package esker

// #include "glue.h"
import "C"

import (
	"fmt"
	"strings"
	"syscall"
)

// Code says what kind of error an [Error] is.
type Code int32

// The codes of the library. Later versions may add some.
const (
	NotFound        Code = C.ESKER_NOT_FOUND
	InvalidArgument Code = C.ESKER_INVALID_ARGUMENT
	IO              Code = C.ESKER_IO
	Corruption      Code = C.ESKER_CORRUPTION
	NotAStore       Code = C.ESKER_NOT_A_STORE
	ForeignStore    Code = C.ESKER_FOREIGN_STORE
	StoreExists     Code = C.ESKER_STORE_EXISTS
	Locked          Code = C.ESKER_LOCKED
	Unsupported     Code = C.ESKER_UNSUPPORTED
	Comparator      Code = C.ESKER_COMPARATOR
	UnknownKeyspace Code = C.ESKER_KEYSPACE
	ReadOnly        Code = C.ESKER_READ_ONLY
	Halted          Code = C.ESKER_HALTED
	Closed          Code = C.ESKER_CLOSED
	Aborted         Code = C.ESKER_ABORTED
	Internal        Code = C.ESKER_INTERNAL
)

// String is the code's name, as "corruption".
func (c Code) String() string { return C.GoString(C.esker_code_name(C.esker_code(c))) }

// Error is what went wrong, where, and the way out. Every error of this package is one, but for those of the program's
// own context and iterators.
//
// errors.Is(err, ErrLocked) asks for a code, and errors.Is(err, syscall.ENOSPC) for what the operating system says;
// errors.As gives code and message.
type Error struct {
	Code    Code
	Message string
	Errno   syscall.Errno // the operating system's number of an IO error, and of the one that stopped writes; 0 for none
}

// One error for each code, for errors.Is.
var (
	ErrNotFound        = &Error{Code: NotFound}        // the key has no value, or there is no such property
	ErrInvalidArgument = &Error{Code: InvalidArgument} // a key too long, keys out of order in a bulk load, ...
	ErrIO              = &Error{Code: IO}              // the operating system refused, or the disk is full
	ErrCorruption      = &Error{Code: Corruption}      // stored bytes are not what was written: see Verify and Repair
	ErrNotAStore       = &Error{Code: NotAStore}       // the directory holds no store
	ErrForeignStore    = &Error{Code: ForeignStore}    // the directory holds a store of LevelDB or its kin, or some of its files
	ErrStoreExists     = &Error{Code: StoreExists}     // a store is there, and Options.ErrorIfExists is set
	ErrLocked          = &Error{Code: Locked}          // the store is open elsewhere
	ErrUnsupported     = &Error{Code: Unsupported}     // a format or compression that this build does not have
	ErrComparator      = &Error{Code: Comparator}      // a keyspace has another order than was given, or one of a program's own
	ErrKeyspace        = &Error{Code: UnknownKeyspace} // a keyspace exists, or is missing, or was dropped
	ErrReadOnly        = &Error{Code: ReadOnly}        // a write to a store that was opened read-only
	ErrHalted          = &Error{Code: Halted}          // an earlier failure stopped writes: see DB.Resume
	ErrClosed          = &Error{Code: Closed}          // the store, or the handle, was closed
	ErrAborted         = &Error{Code: Aborted}         // the program said stop
	ErrInternal        = &Error{Code: Internal}        // a bug in Esker, to be reported
)

// Error is one line: the message of the library, or the name of the code.
func (e *Error) Error() string {
	if e.Message == "" {
		return "esker: " + strings.ReplaceAll(e.Code.String(), "_", " ")
	}
	return "esker: " + e.Message
}

// Is says whether target is the error of the same code that has no message, as ErrLocked.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Code == e.Code
}

// Unwrap is the error of the operating system, which is a syscall.Errno; nil where there is none.
func (e *Error) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// invalid is an argument that this package refuses itself.
func invalid(format string, args ...any) error {
	return &Error{Code: InvalidArgument, Message: fmt.Sprintf(format, args...)}
}

// failure makes an error of a code and the library's error object, which it frees. nil for ESKER_OK.
func failure(code C.esker_code, object *C.esker_error) error {
	switch {
	case code == C.ESKER_OK:
		return nil
	case object == nil && code == C.ESKER_NOT_FOUND:
		return ErrNotFound
	}
	err := &Error{
		Code:    Code(code),
		Message: C.GoString(C.esker_error_message(object)),
		Errno:   syscall.Errno(C.esker_error_os_code(object)),
	}
	C.esker_error_free(&object)
	return err
}

// zeroTerminated is a text for C, which ends at the first NUL: one that has a NUL in it is refused, not cut.
func zeroTerminated(what, text string) (*C.char, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, invalid("the %s %q has a NUL byte in it", what, text)
	}
	return C.CString(text), nil
}

// takeString copies a text of the library's and frees it.
func takeString(s *C.esker_string) string {
	defer C.esker_string_free(s)
	return C.GoStringN(s.data, C.int(s.len))
}
