package esker

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestEverythingSaysThatItIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	db := open(t, path, nil)
	ks, err := db.CreateKeyspace("other", nil)
	ok(t, err)
	ok(t, ks.Put([]byte("a"), []byte("1")))
	snapshot, err := db.Snapshot()
	ok(t, err)
	view, err := ks.At(snapshot)
	ok(t, err)
	cursor, err := ks.Cursor()
	ok(t, err)
	var batch Batch
	batch.PutIn(ks, []byte("b"), nil)
	ok(t, db.Close())
	ok(t, db.Close())

	for name, call := range map[string]func() error{
		"get":        func() error { _, err := db.Get(nil); return err },
		"has":        func() error { _, err := db.Has(nil); return err },
		"multi-get":  func() error { _, err := db.MultiGet(nil); return err },
		"put":        func() error { return db.Put(nil, nil) },
		"delete":     func() error { return db.Delete(nil) },
		"write":      func() error { return db.Write(&batch) },
		"flush":      db.Flush,
		"sync":       db.Sync,
		"wait":       db.WaitForCompactions,
		"resume":     db.Resume,
		"compact":    func() error { return db.CompactRange(nil, nil) },
		"size":       func() error { _, err := db.ApproximateSize(nil, nil); return err },
		"checkpoint": func() error { return db.Checkpoint("x") },
		"names":      func() error { _, err := db.Keyspaces(); return err },
		"create":     func() error { _, err := db.CreateKeyspace("x", nil); return err },
		"drop":       func() error { return db.DropKeyspace("x") },
		"snapshot":   func() error { _, err := db.Snapshot(); return err },
		"at":         func() error { _, err := ks.At(snapshot); return err },
		"stats":      func() error { _, err := db.Stats(); return err },
		"verify":     func() error { _, err := db.Verify(t.Context()); return err },
		"cursor":     func() error { _, err := ks.Cursor(); return err },
		"load":       func() error { _, err := db.BulkLoad(nil); return err },
		"ks get":     func() error { _, err := ks.Get(nil); return err },
		"ks put":     func() error { return ks.Put(nil, nil) },
		"ks stats":   func() error { _, err := ks.Stats(); return err },
		"view get":   func() error { _, err := view.Get(nil); return err },
		"scan": func() error {
			for _, err := range ks.All() {
				return err
			}
			return nil
		},
	} {
		if err := call(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The cursor keeps what it walks over, and the lock.
	if !cursor.First() || string(cursor.Value()) != "1" {
		t.Fatal(cursor.Err())
	}
	_, err = Open(path, nil)
	gives(t, err, ErrLocked)
	ok(t, cursor.Close())
	ok(t, cursor.Close())
	gives(t, cursor.Err(), ErrClosed)
	if cursor.First() || cursor.Valid() {
		t.Fatal("a closed cursor moves")
	}
	ok(t, ks.Close())
	ok(t, ks.Close())
	gives(t, ks.Put(nil, nil), ErrClosed)
	ok(t, view.Close())
	ok(t, snapshot.Close())
	open(t, path, nil)
}

func TestTheLastCallFreesAHandle(t *testing.T) {
	times := 0
	h := newHandle(func() { times++ })
	if !h.enter() || !h.enter() {
		t.Fatal("a new handle is closed")
	}
	h.close()
	h.close()
	h.leave()
	if times != 0 || h.enter() {
		t.Fatal("freed under a call, or open after close")
	}
	h.leave()
	<-h.gone
	if times != 1 || h.enter() || times != 1 {
		t.Fatal("freed", times, "times")
	}
	unused := newHandle(func() { times++ })
	unused.close()
	if <-unused.gone; times != 2 {
		t.Fatal("nobody used it, and it is not freed")
	}
}

// Goroutines use everything there is while others close it.
func TestClosingWhileOthersUseIt(t *testing.T) {
	for round := range 10 {
		db := filled(t, filepath.Join(t.TempDir(), "store"), 200)
		ks, err := db.CreateKeyspace("other", nil)
		ok(t, err)
		snapshot, err := db.Snapshot()
		ok(t, err)
		view, err := db.At(snapshot)
		ok(t, err)
		cursor, err := db.Cursor()
		ok(t, err)
		var group sync.WaitGroup
		var late atomic.Int64
		for n := range 8 {
			group.Add(1)
			go func() {
				defer group.Done()
				for i := 0; ; i++ {
					var err error
					switch key := fmt.Appendf(nil, "key %06d", i%200); (n + i) % 8 {
					case 0:
						_, err = db.Get(key)
					case 1:
						err = ks.Put(key, key)
					case 2:
						var batch Batch
						batch.PutIn(ks, key, nil)
						err = db.Write(&batch)
					case 3:
						_, err = view.MultiGet(key, nil)
					case 4:
						for _, e := range db.Range(key, nil) {
							err = e
							break
						}
					case 5:
						cursor.Seek(key)
						_ = append(cursor.Key(), cursor.Value()...)
						err = cursor.Err()
					case 6:
						_, err = db.At(snapshot)
					case 7:
						err = db.Sync()
					}
					if errors.Is(err, ErrClosed) {
						late.Add(1)
						return
					} else if err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		time.Sleep(time.Duration(round) * time.Millisecond)
		group.Add(4)
		for _, closing := range []func() error{ks.Close, view.Close, cursor.Close, snapshot.Close} {
			go func() { defer group.Done(); closing() }()
		}
		for range 2 {
			group.Add(1)
			go func() { defer group.Done(); db.Close() }()
		}
		group.Wait()
		if late.Load() != 8 {
			t.Fatal(late.Load(), "goroutines were told")
		}
	}
}

func TestHandlesThatAreForgottenAreClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	db := filled(t, path, 100)
	func() {
		snapshot, err := db.Snapshot()
		ok(t, err)
		_, err = db.At(snapshot)
		ok(t, err)
		cursor, err := db.Cursor()
		ok(t, err)
		cursor.First()
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		stats, err := db.Stats()
		ok(t, err)
		if stats.Snapshots == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(stats.Snapshots, "snapshots are held")
		}
	}
	ok(t, db.Close())
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		if again, err := Open(path, nil); err == nil {
			ok(t, again.Close())
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a forgotten cursor keeps the lock")
		}
	}
}

func TestManyGoroutinesWriteAndRead(t *testing.T) {
	db := fresh(t)
	var group sync.WaitGroup
	for n := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 500 {
				key := fmt.Appendf(nil, "%d/%04d", n, i)
				if err := db.Put(key, key); err != nil {
					t.Error(err)
				}
				if value, err := db.Get(key); err != nil || string(value) != string(key) {
					t.Error(string(value), err)
				}
			}
		}()
	}
	group.Wait()
	if n := len(keys(t, db.All())); n != 4000 {
		t.Fatal(n)
	}
}
