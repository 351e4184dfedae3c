package esker

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
)

// numbers are entries in order; `at` is called before each.
func numbers(n int, at func(i int)) func(func([]byte, []byte) bool) {
	return func(yield func([]byte, []byte) bool) {
		for i := range n {
			if at != nil {
				at(i)
			}
			if !yield(fmt.Appendf(nil, "%07d", i), fmt.Appendf(nil, "%060d", i)) {
				return
			}
		}
	}
}

func TestALoadOfManyChunks(t *testing.T) {
	db := fresh(t)
	loaded, err := db.BulkLoad(numbers(50000, nil))
	ok(t, err)
	if loaded != 50000 || len(keys(t, db.All())) != 50000 || get(t, db, "0049999") != fmt.Sprintf("%060d", 49999) {
		t.Fatal(loaded)
	}
	// A scan is what a load takes.
	other := fresh(t)
	loaded, err = other.BulkLoadEntries(db.All())
	ok(t, err)
	if loaded != 50000 {
		t.Fatal(loaded)
	}
	if loaded, err = other.BulkLoad(func(func([]byte, []byte) bool) {}); loaded != 0 || err != nil {
		t.Fatal(loaded, err)
	}
}

func TestALoadThatFailsLoadsNothing(t *testing.T) {
	db := fresh(t)
	_, err := db.BulkLoad(func(yield func([]byte, []byte) bool) {
		// Far more than is on its way at a time: the iterator learns that the load has ended.
		for i := range 1_000_000_000 {
			if !yield(fmt.Appendf(nil, "%010d", 1_000_000_000-i), make([]byte, 1000)) {
				return
			}
		}
	})
	gives(t, err, ErrInvalidArgument)
	_, err = db.BulkLoad(func(yield func([]byte, []byte) bool) { yield(make([]byte, MaxKeyLen+1), nil) })
	gives(t, err, ErrInvalidArgument)

	mine := errors.New("the file ends in the middle of a line")
	_, err = db.BulkLoadEntries(func(yield func(Entry, error) bool) {
		if yield(Entry{Key: []byte("a")}, nil) {
			yield(Entry{}, mine)
		}
	})
	if err != mine {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if p := recover(); p != "the iterator's own" {
				t.Error(p)
			}
		}()
		db.BulkLoad(numbers(100000, func(i int) {
			if i == 90000 {
				panic("the iterator's own")
			}
		}))
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		db.BulkLoad(numbers(10, func(int) { runtime.Goexit() }))
	}()
	<-done
	if found := keys(t, db.All()); len(found) != 0 {
		t.Fatal(len(found))
	}
}

func TestALoadWhoseIteratorUsesTheStore(t *testing.T) {
	db := fresh(t)
	loaded, err := db.BulkLoad(numbers(1000, func(i int) {
		ok(t, db.Put(fmt.Appendf(nil, "put %d", i), nil))
		if i == 500 {
			ok(t, db.Flush())
			inner, err := db.BulkLoad(numbers(10, nil))
			if inner != 10 || err != nil {
				t.Error(inner, err)
			}
		}
	}))
	ok(t, err)
	if n := len(keys(t, db.All())); loaded != 1000 || n != 2000 {
		t.Fatal(loaded, n)
	}
}

func TestALoadWhoseIteratorClosesTheStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	db := open(t, path, nil)
	_, err := db.BulkLoad(numbers(100000, func(i int) {
		if i == 50000 {
			ok(t, db.Close())
		}
	}))
	gives(t, err, ErrClosed)
	if found := keys(t, open(t, path, nil).All()); len(found) != 0 {
		t.Fatal(len(found))
	}
}
