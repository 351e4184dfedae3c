package esker

import (
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func filled(t *testing.T, path string, n int) *DB {
	t.Helper()
	db := open(t, path, nil)
	var batch Batch
	for i := range n {
		batch.Put(fmt.Appendf(nil, "key %06d", i), fmt.Appendf(nil, "%0100d", i))
	}
	ok(t, db.Write(&batch))
	return db
}

func TestALoopMayBeLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	db := filled(t, path, 10000)
	for range 100 {
		for entry, err := range db.All() {
			ok(t, err)
			if string(entry.Key) == "key 000003" {
				break
			}
		}
	}
	func() {
		defer func() { _ = recover() }()
		for range db.All() {
			panic("out of the loop")
		}
	}()
	next, stop := iter.Pull2(db.Backward(nil, nil))
	if entry, err, _ := next(); err != nil || string(entry.Key) != "key 009999" {
		t.Fatal(entry, err)
	}
	ok(t, db.Close())
	_, err := Open(path, nil)
	gives(t, err, ErrLocked)
	stop()
	// No loop has left a cursor, which would keep the lock.
	open(t, path, nil)
}

func TestALoopSeesOneMoment(t *testing.T) {
	db := filled(t, filepath.Join(t.TempDir(), "store"), 5000)
	all := db.All()
	n := 0
	for entry, err := range all {
		ok(t, err)
		ok(t, db.Delete(entry.Key))
		ok(t, db.Put(append([]byte("new "), entry.Key...), nil))
		n++
	}
	if n != 5000 {
		t.Fatal(n)
	}
	// The same walk again begins at another moment.
	if found := keys(t, all); len(found) != 5000 || found[0] != "new key 000000" {
		t.Fatal(len(found))
	}
}

func TestALoopGoesOnWhenItsBodyClosesTheStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	db := filled(t, path, 20000)
	n := 0
	for entry, err := range db.All() {
		ok(t, err)
		if n == 10 {
			ok(t, db.Close())
			_, err := Open(path, nil)
			gives(t, err, ErrLocked)
		}
		if string(entry.Key) != fmt.Sprintf("key %06d", n) {
			t.Fatal(n, string(entry.Key))
		}
		n++
	}
	if n != 20000 {
		t.Fatal(n)
	}
	open(t, path, nil)
	for entry, err := range db.All() {
		gives(t, err, ErrClosed)
		if entry.Key != nil {
			t.Fatal(entry)
		}
		n++
	}
	if n != 20001 {
		t.Fatal("an error is given once", n)
	}
}

func TestEntriesStayAfterTheLoop(t *testing.T) {
	db := filled(t, filepath.Join(t.TempDir(), "store"), 5000)
	var kept []Entry
	for entry, err := range db.All() {
		ok(t, err)
		kept = append(kept, entry)
	}
	ok(t, db.Close())
	for i, entry := range kept {
		if string(entry.Key) != fmt.Sprintf("key %06d", i) || string(entry.Value) != fmt.Sprintf("%0100d", i) {
			t.Fatal(i, string(entry.Key), string(entry.Value))
		}
	}
}

func TestShortScans(t *testing.T) {
	db := fresh(t)
	for _, key := range []string{"user/1", "user/2", "user/3", "zone", "user0"} {
		ok(t, db.Put([]byte(key), []byte("value")))
	}
	for name, c := range map[string]struct {
		entries  Entries
		expected []string
	}{
		"prefix":     {db.Prefix([]byte("user/")), []string{"user/1", "user/2", "user/3"}},
		"range":      {db.Range([]byte("user/2"), []byte("zone")), []string{"user/2", "user/3", "user0"}},
		"backward":   {db.Backward([]byte("user/2"), []byte("user/3")), []string{"user/2"}},
		"none":       {db.Range([]byte("z"), []byte("a")), []string{}},
		"none back":  {db.Backward([]byte("z"), []byte("a")), []string{}},
		"below none": {db.Range(nil, []byte{}), []string{}},
		"both":       {db.Scan(Scan{Prefix: []byte("user"), From: []byte("user/3")}), []string{"user/3", "user0"}},
	} {
		if found := keys(t, c.entries); !slices.Equal(found, c.expected) {
			t.Errorf("%s: %q, not %q", name, found, c.expected)
		}
	}
	cursor, err := db.KeysCursor()
	ok(t, err)
	defer cursor.Close()
	if !cursor.Seek([]byte("user/9")) || string(cursor.Key()) != "user0" || len(cursor.Value()) != 0 {
		t.Fatalf("%q", cursor.Key())
	}
	if cursor.Last(); cursor.Next() || cursor.Key() != nil || cursor.Value() != nil || cursor.Err() != nil {
		t.Fatalf("%q", cursor.Key())
	}
}

// allocated is how many bytes Go allocates for something.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestNothingOutsideTheBoundsIsCopied(t *testing.T) {
	db := fresh(t)
	reverse, err := db.CreateKeyspace("reverse", &KeyspaceOptions{Order: Reverse})
	ok(t, err)
	large := make([]byte, 16<<20)
	for _, ks := range []*Keyspace{db.Keyspace, reverse} {
		for _, key := range []string{"b", "c"} {
			ok(t, ks.Put([]byte(key), []byte("small")))
		}
		for _, key := range []string{"a", "d"} {
			ok(t, ks.Put([]byte(key), large))
		}
	}
	a, b, c, d := []byte("a"), []byte("b"), []byte("c"), []byte("d")
	for name, walk := range map[string]struct {
		entries  Entries
		expected []string
	}{
		"up":           {db.Range(b, d), []string{"b", "c"}},
		"down":         {db.Backward(b, d), []string{"c", "b"}},
		"prefix":       {db.Prefix(c), []string{"c"}},
		"prefix down":  {db.Scan(Scan{Prefix: c, Backward: true}), []string{"c"}},
		"none":         {db.Range([]byte("cc"), d), []string{}},
		"reverse up":   {reverse.Range(c, a), []string{"c", "b"}},
		"reverse down": {reverse.Backward(c, a), []string{"b", "c"}},
		"reverse from": {reverse.Scan(Scan{Prefix: c}), []string{"c"}},
	} {
		bytes := allocated(func() {
			if found := keys(t, walk.entries); !slices.Equal(found, walk.expected) {
				t.Errorf("%s: %q, not %q", name, found, walk.expected)
			}
		})
		if bytes > 1<<20 {
			t.Errorf("%s: %d bytes for two small entries", name, bytes)
		}
	}
	// What is inside is copied, however large.
	for entry, err := range db.Range(d, nil) {
		ok(t, err)
		if len(entry.Value) != len(large) {
			t.Fatal(len(entry.Value))
		}
	}
}

func TestTheBoundsOfALoopStayAsTheyWere(t *testing.T) {
	db := filled(t, filepath.Join(t.TempDir(), "store"), 5000)
	for name, scan := range map[string]func(low, high, prefix []byte) Entries{
		"range":    func(low, high, _ []byte) Entries { return db.Range(low, high) },
		"backward": func(low, high, _ []byte) Entries { return db.Backward(low, high) },
		"prefix":   func(_, _, prefix []byte) Entries { return db.Prefix(prefix) },
		"prefix backward": func(_, _, prefix []byte) Entries {
			return db.Scan(Scan{Prefix: prefix, Backward: true})
		},
	} {
		low, high, prefix := []byte("key 001000"), []byte("key 002000"), []byte("key 001")
		entries := scan(low, high, prefix)
		// The first loop writes into the slices, and the second begins after that.
		for range 2 {
			n := 0
			for _, err := range entries {
				ok(t, err)
				if n++; n == 10 {
					copy(low, "key 001500")
					copy(high, "key 001500")
					copy(prefix, "key 004")
				}
			}
			if n != 1000 {
				t.Errorf("%s: %d entries", name, n)
			}
		}
	}
}
