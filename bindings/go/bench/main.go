// Command bench fills, reads at random and scans a store through the Go package, and one of goleveldb beside it. A first look at what
// the crossing into C costs, not a comparison of engines: `esker bench` is that.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	esker "example.invalid/esker/bindings/go"
	"github.com/syndtr/goleveldb/leveldb"
)

// store is what both can do.
type store struct {
	name  string
	put   func(key, value []byte) error
	get   func(key []byte) ([]byte, error)
	scan  func(each func(key, value []byte)) error
	close func() error
}

func openEsker(path string) store {
	db, err := esker.Open(path, nil)
	check(err)
	scan := func(each func(key, value []byte)) error {
		for entry, err := range db.All() {
			if err != nil {
				return err
			}
			each(entry.Key, entry.Value)
		}
		return nil
	}
	return store{"esker", db.Put, db.Get, scan, db.Close}
}

func openLevel(path string) store {
	db, err := leveldb.OpenFile(path, nil)
	check(err)
	scan := func(each func(key, value []byte)) error {
		it := db.NewIterator(nil, nil)
		defer it.Release()
		for it.Next() {
			each(it.Key(), it.Value())
		}
		return it.Error()
	}
	put := func(key, value []byte) error { return db.Put(key, value, nil) }
	get := func(key []byte) ([]byte, error) { return db.Get(key, nil) }
	return store{"goleveldb", put, get, scan, db.Close}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// timed prints how long one entry took.
func timed(name, row string, n int, work func()) {
	began := time.Now()
	work()
	fmt.Printf("%-10s %-12s %8.0f ns an entry\n", name, row, float64(time.Since(began).Nanoseconds())/float64(n))
}

func main() {
	n := flag.Int("n", 300_000, "entries")
	flag.Parse()
	dir, err := os.MkdirTemp("", "esker-go-bench")
	check(err)
	defer os.RemoveAll(dir)
	for _, open := range []func(string) store{openEsker, openLevel} {
		path, err := os.MkdirTemp(dir, "store")
		check(err)
		run(open(filepath.Join(path, "db")), *n)
	}
}

func run(s store, n int) {
	key, value := make([]byte, 16), make([]byte, 100)
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	at := func(i int) []byte {
		binary.BigEndian.PutUint64(key[8:], uint64(i))
		return key
	}
	timed(s.name, "fill random", n, func() {
		for _, i := range order {
			binary.BigEndian.PutUint64(value, uint64(i))
			check(s.put(at(i), value))
		}
	})
	timed(s.name, "read random", n, func() {
		for _, i := range order {
			got, err := s.get(at(i))
			check(err)
			if binary.BigEndian.Uint64(got) != uint64(i) {
				log.Fatal("another value")
			}
		}
	})
	seen := 0
	timed(s.name, "scan", n, func() { check(s.scan(func(k, v []byte) { seen += len(k) / 16 })) })
	if seen != n {
		log.Fatal("the scan saw ", seen)
	}
	check(s.close())
}
