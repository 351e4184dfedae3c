//go:build !race

package esker

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// A process of its own loads, since it gets no memory for a moment. The race detector would need some.
func TestALoadWithoutMemoryForAChunkFails(t *testing.T) {
	if path := os.Getenv("ESKER_TEST_NO_MEMORY"); path != "" {
		loadWithoutMemory(t, path)
		return
	}
	command := exec.Command(os.Args[0], "-test.run=^TestALoadWithoutMemoryForAChunkFails$", "-test.v")
	// What is large is mapped, and what cannot be mapped is not found elsewhere.
	command.Env = append(os.Environ(), "ESKER_TEST_NO_MEMORY="+t.TempDir(), "MALLOC_ARENA_MAX=1", "MALLOC_MMAP_THRESHOLD_=131072")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}

func loadWithoutMemory(t *testing.T, path string) {
	var limit syscall.Rlimit
	ok(t, syscall.Getrlimit(syscall.RLIMIT_AS, &limit))
	db := open(t, path, nil)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	large := make([]byte, 8<<20)
	n := 0
	loaded, err := db.BulkLoad(func(yield func([]byte, []byte) bool) {
		next := func(value []byte) bool {
			n++
			return yield(fmt.Appendf(nil, "%07d", n), value)
		}
		// After it the buffer in Go is large enough. It is used up when two more chunks have been taken.
		next(large)
		for range 2 {
			next(large[:loadChunk])
		}
		runtime.GC()
		time.Sleep(500 * time.Millisecond)
		none := limit
		none.Cur = 1
		ok(t, syscall.Setrlimit(syscall.RLIMIT_AS, &none))
		goesOn := next(large)
		ok(t, syscall.Setrlimit(syscall.RLIMIT_AS, &limit))
		if goesOn {
			t.Error("there was memory after all")
		}
	})
	gives(t, err, ErrInternal)
	if found := keys(t, db.All()); loaded != 0 || len(found) != 0 {
		t.Fatal(loaded, len(found))
	}
}
