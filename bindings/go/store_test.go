package esker

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAStoreIsFoundAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	db := open(t, path, nil)
	ok(t, db.PutWith([]byte("ash"), []byte("Fraxinus"), Synced))
	ok(t, db.Close())
	if info, err := db.Property("esker.stats"); !errors.Is(err, ErrClosed) {
		t.Fatal(info, err)
	}
	db = open(t, path, &Options{MustExist: true, ReadOnly: true})
	if get(t, db, "ash") != "Fraxinus" {
		t.Fatal("another value")
	}
	gives(t, db.Put([]byte("ash"), nil), ErrReadOnly)
	_, err := db.BulkLoad(func(func([]byte, []byte) bool) {})
	gives(t, err, ErrReadOnly)
}

func TestWhatCannotBeOpenedSaysWhy(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "none"), &Options{MustExist: true})
	gives(t, err, ErrNotAStore)
	if e := (*Error)(nil); !errors.As(err, &e) || e.Code != NotAStore || !strings.Contains(e.Message, "none") {
		t.Fatalf("%#v", err)
	}
	if errors.Is(err, ErrLocked) || errors.Is(err, &Error{Code: NotAStore, Message: "another"}) {
		t.Fatal("every error is every error")
	}
	path := filepath.Join(dir, "store")
	db := open(t, path, nil)
	_, err = Open(path, nil)
	gives(t, err, ErrLocked)
	ok(t, db.Close())
	_, err = Open(path, &Options{ErrorIfExists: true})
	gives(t, err, ErrStoreExists)
	_, err = Open("a\x00b", nil)
	gives(t, err, ErrInvalidArgument)
	for _, opts := range []*Options{{Memory: 5}, {BlockSize: 5}, {BlockSize: -1}, {BlobThreshold: -1}, {SegmentSize: 1},
		{Order: 9}, {Compression: 9}, {Compression: -1}, {Durability: 9}} {
		_, err = Open(path, opts)
		gives(t, err, ErrInvalidArgument)
		if !strings.Contains(err.Error(), "option") {
			t.Fatal(err)
		}
	}
}

func TestTheOrderOfAStoreStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	db := open(t, path, &Options{Order: Reverse})
	ok(t, db.Put([]byte("a"), nil))
	ok(t, db.Put([]byte("b"), nil))
	ok(t, db.Close())
	db = open(t, path, nil)
	if found := keys(t, db.All()); !slices.Equal(found, []string{"b", "a"}) {
		t.Fatal(found)
	}
	ok(t, db.Close())
	_, err := Open(path, &Options{Order: Bytewise})
	gives(t, err, ErrComparator)
}

func TestLimitsAndEmptiness(t *testing.T) {
	db := fresh(t)
	for _, key := range [][]byte{nil, {}} {
		ok(t, db.Put(key, nil))
		value, err := db.Get(key)
		ok(t, err)
		if value == nil || len(value) != 0 {
			t.Fatalf("%#v", value)
		}
	}
	longest, tooLong := make([]byte, MaxKeyLen), make([]byte, MaxKeyLen+1)
	ok(t, db.Put(longest, []byte("x")))
	gives(t, db.Put(tooLong, nil), ErrInvalidArgument)
	gives(t, db.Delete(tooLong), ErrInvalidArgument)
	_, err := db.Get(tooLong)
	gives(t, err, ErrNotFound)
	var batch Batch
	batch.Put([]byte("a"), []byte("in a batch"))
	batch.Delete(tooLong)
	batch.Put([]byte("b"), nil)
	gives(t, db.Write(&batch), ErrInvalidArgument)
	has, err := db.Has([]byte("a"))
	if has || err != nil {
		t.Fatal("half a batch was written", err)
	}
	batch.Clear()
	batch.Put([]byte("a"), nil)
	ok(t, db.Write(&batch))
	if batch.Len() != 1 || batch.Size() == 0 {
		t.Fatal(batch.Len(), batch.Size())
	}
	if found := keys(t, db.All()); !slices.Equal(found, []string{"", string(longest), "a"}) {
		t.Fatal(len(found))
	}
}

func TestAValueOfAnyLength(t *testing.T) {
	db := fresh(t)
	for _, n := range []int{0, 1, 31, 32, 33, 100, 5000, 70000, 3 << 20, 1, 64, 40} {
		value := bytes.Repeat([]byte{byte(n)}, n)
		ok(t, db.Put([]byte("key"), value))
		got, err := db.Get([]byte("key"))
		ok(t, err)
		if !bytes.Equal(got, value) || cap(got) > 2*n+64 {
			t.Fatal(n, len(got), cap(got))
		}
		for entry, err := range db.All() {
			ok(t, err)
			if !bytes.Equal(entry.Value, value) || string(append(entry.Key, 'x')) != "keyx" || !bytes.Equal(entry.Value, value) {
				t.Fatal(n, len(entry.Value))
			}
		}
	}
}

func TestKeyspaces(t *testing.T) {
	db := fresh(t)
	_, err := db.OpenKeyspace("log")
	gives(t, err, ErrKeyspace)
	log, err := db.CreateKeyspace("log", &KeyspaceOptions{Order: Reverse, Compression: CompressionZstd})
	ok(t, err)
	_, err = db.CreateKeyspace("log", nil)
	gives(t, err, ErrKeyspace)
	_, err = db.CreateKeyspace("l\x00g", nil)
	gives(t, err, ErrInvalidArgument)
	_, err = db.CreateKeyspace("odd", &KeyspaceOptions{BlobThreshold: 1})
	gives(t, err, ErrInvalidArgument)
	var batch Batch
	batch.PutIn(log, []byte("a"), []byte("1"))
	batch.PutIn(log, []byte("b"), []byte("2"))
	batch.PutIn(db.Keyspace, []byte("state"), []byte("open"))
	ok(t, db.WriteWith(&batch, Synced))
	if found := keys(t, log.All()); !slices.Equal(found, []string{"b", "a"}) {
		t.Fatal(found)
	}
	if get(t, db, "state") != "open" {
		t.Fatal("not in the default keyspace")
	}
	names, err := db.Keyspaces()
	ok(t, err)
	if !slices.Equal(names, []string{"default", "log"}) {
		t.Fatal(names)
	}
	other := fresh(t)
	gives(t, other.Write(&batch), ErrInvalidArgument)
	figures, err := log.Stats()
	ok(t, err)
	if figures.ID != 1 || figures.MemtableEntries != 2 {
		t.Fatalf("%+v", figures)
	}
	ok(t, db.DropKeyspace("log"))
	gives(t, log.Put(nil, nil), ErrKeyspace)
	gives(t, db.Write(&batch), ErrKeyspace)
	gives(t, db.DropKeyspace("default"), ErrInvalidArgument)
	ok(t, db.Keyspace.Close()) // it is the store's
	ok(t, db.Put(nil, nil))
}

func TestFiguresCheckpointAndCompaction(t *testing.T) {
	dir := t.TempDir()
	db := open(t, filepath.Join(dir, "store"), nil)
	for i := range 2000 {
		ok(t, db.Put([]byte{byte(i >> 8), byte(i)}, bytes.Repeat([]byte{byte(i)}, 100)))
	}
	ok(t, db.Sync())
	ok(t, db.Flush())
	ok(t, db.CompactRange(nil, nil))
	ok(t, db.WaitForCompactions())
	ok(t, db.Resume())
	stats, err := db.Stats()
	ok(t, err)
	if stats.Sequence < 2000 || stats.TableBytes == 0 || stats.Halted || stats.MemoryBudget != 128<<20 {
		t.Fatalf("%+v", stats)
	}
	all, err := db.ApproximateSize(nil, nil)
	ok(t, err)
	half, err := db.ApproximateSize([]byte{4}, nil)
	ok(t, err)
	if half == 0 || half >= all {
		t.Fatal(half, all)
	}
	if text, err := db.Property("esker.stats"); err != nil || text == "" {
		t.Fatal(text, err)
	}
	_, err = db.Property("none")
	gives(t, err, ErrNotFound)
	copied := filepath.Join(dir, "copy")
	ok(t, db.Checkpoint(copied))
	gives(t, db.Checkpoint(copied), ErrIO)
	ok(t, db.Delete([]byte{0, 0}))
	if n := len(keys(t, open(t, copied, nil).All())); n != 2000 {
		t.Fatal(n)
	}
}

func TestSnapshots(t *testing.T) {
	db := fresh(t)
	ok(t, db.Put([]byte("stock"), []byte("17")))
	before, err := db.Snapshot()
	ok(t, err)
	ok(t, db.Put([]byte("stock"), []byte("16")))
	view, err := db.At(before)
	ok(t, err)
	if before.Sequence() == 0 {
		t.Fatal("no sequence")
	}
	ok(t, before.Close())
	if get(t, view, "stock") != "17" || get(t, db, "stock") != "16" || before.Sequence() != 0 {
		t.Fatal("the view of a closed snapshot is another one")
	}
	_, err = db.At(before)
	gives(t, err, ErrClosed)
	other := fresh(t)
	foreign, err := other.Snapshot()
	ok(t, err)
	_, err = db.At(foreign)
	gives(t, err, ErrInvalidArgument)
}

func TestDamageIsFoundAndRepaired(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	db := open(t, path, nil)
	for i := range 5000 {
		ok(t, db.Put([]byte{byte(i >> 8), byte(i)}, []byte(strings.Repeat("value", 9))))
	}
	report, err := db.Verify(t.Context())
	ok(t, err)
	ok(t, db.Close())
	report, err = Verify(t.Context(), path)
	ok(t, err)
	tables, err := filepath.Glob(filepath.Join(path, "*.tbl"))
	ok(t, err)
	bytes, err := os.ReadFile(tables[0])
	ok(t, err)
	for i := range 64 {
		bytes[4096+i] ^= 0xff
	}
	ok(t, os.WriteFile(tables[0], bytes, 0o644))
	report, err = Verify(t.Context(), path)
	gives(t, err, ErrCorruption)
	if !strings.Contains(report, filepath.Base(tables[0])) {
		t.Fatal(report)
	}
	report, err = Repair(path, nil)
	ok(t, err)
	if !strings.HasPrefix(report, "repaired") {
		t.Fatal(report)
	}
	if n := len(keys(t, open(t, path, nil).All())); n == 0 || n >= 5000 {
		t.Fatal(n)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	_, err = Verify(ctx, filepath.Join(t.TempDir()))
	if err == nil {
		t.Fatal("an empty directory is sound")
	}
}

func TestAVerificationStopsWithItsContext(t *testing.T) {
	db := fresh(t)
	rows := func(yield func([]byte, []byte) bool) {
		value := make([]byte, 10000)
		for i := range 5000 {
			rand.Read(value)
			if !yield([]byte{byte(i >> 8), byte(i)}, value) {
				return
			}
		}
	}
	_, err := db.BulkLoad(rows)
	ok(t, err)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err = db.Verify(ctx)
	gives(t, err, why)
	// In the middle of it. It takes some milliseconds; that one of many is stopped within them is enough.
	for range 200 {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { cancel(why) })
		_, err := db.Verify(ctx)
		if errors.Is(err, why) {
			return
		}
		ok(t, err)
	}
	t.Fatal("no verification was stopped")
}

func TestDestroy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	db := open(t, path, nil)
	gives(t, Destroy(path), ErrLocked)
	ok(t, db.Close())
	ok(t, Destroy(path))
	ok(t, Destroy(path))
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

func TestKeysLieWhereTheProgramHasThem(t *testing.T) {
	db := fresh(t)
	// The bytes of these keys lie in an object that has pointers too.
	type node struct {
		next     *node
		from, to [1]byte
	}
	n := &node{next: &node{}, from: [1]byte{'a'}, to: [1]byte{'c'}}
	from, to := n.from[:], n.to[:]
	ok(t, db.Put(from, n.to[:]))
	ok(t, db.CompactRange(from, to))
	size, err := db.ApproximateSize(from, to)
	ok(t, err)
	if size == 0 {
		t.Fatal("a key takes room")
	}
	if found := keys(t, db.Range(from, to)); len(found) != 1 {
		t.Fatal(found)
	}
	_, err = db.MultiGet(from, to)
	ok(t, err)
	cursor, err := db.Cursor()
	ok(t, err)
	defer cursor.Close()
	if !cursor.Seek(from) || !cursor.SeekForPrev(to) {
		t.Fatal(cursor.Err())
	}
}

func TestClosingWithoutAFlush(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	for _, flushes := range []bool{false, true} {
		db := open(t, path, &Options{NoFlushOnClose: !flushes})
		ok(t, db.Put([]byte("key"), []byte("value")))
		ok(t, db.Close())
		tables, err := filepath.Glob(filepath.Join(path, "*.tbl"))
		ok(t, err)
		if (len(tables) > 0) != flushes {
			t.Fatal(flushes, tables)
		}
	}
	if db := open(t, path, nil); get(t, db, "key") != "value" {
		t.Fatal("lost")
	}
}

func TestErrorsOfTheSystemHaveItsNumber(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(file, nil, 0o644))
	_, err := Open(filepath.Join(file, "store"), nil)
	gives(t, err, ErrIO)
	gives(t, err, syscall.ENOTDIR)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(ErrIO, syscall.ENOTDIR) || errors.Unwrap(ErrIO) != nil {
		t.Fatal("another number")
	}
	gives(t, &Error{Code: IO, Message: "removed", Errno: syscall.ENOENT}, fs.ErrNotExist)
}
