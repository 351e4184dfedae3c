package esker

import (
	"errors"
	"path/filepath"
	"testing"
)

// open opens a store that is closed when the test ends.
func open(t *testing.T, path string, opts *Options) *DB {
	t.Helper()
	db, err := Open(path, opts)
	ok(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func fresh(t *testing.T) *DB {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "store"), nil)
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// gives says that an error is of a kind.
func gives(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, not %v", err, kind)
	}
}

// keys are those of a walk, as strings.
func keys(t *testing.T, entries Entries) []string {
	t.Helper()
	found := []string{}
	for entry, err := range entries {
		ok(t, err)
		found = append(found, string(entry.Key))
	}
	return found
}

func get(t *testing.T, r Reader, key string) string {
	t.Helper()
	value, err := r.Get([]byte(key))
	ok(t, err)
	return string(value)
}
