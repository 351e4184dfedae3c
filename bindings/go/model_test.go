package esker

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// model is a sorted map, in the order of its keyspace.
type model struct {
	values  map[string]string
	reverse bool
}

func (m *model) compare(a, b string) int {
	order := bytes.Compare([]byte(a), []byte(b))
	if m.reverse {
		return -order
	}
	return order
}

func (m *model) copy() *model {
	values := map[string]string{}
	for key, value := range m.values {
		values[key] = value
	}
	return &model{values, m.reverse}
}

func (m *model) scan(s Scan) [][2]string {
	var found [][2]string
	for key, value := range m.values {
		if s.From != nil && m.compare(key, string(s.From)) < 0 || s.To != nil && m.compare(key, string(s.To)) >= 0 ||
			!bytes.HasPrefix([]byte(key), s.Prefix) {
			continue
		}
		if s.KeysOnly {
			value = ""
		}
		found = append(found, [2]string{key, value})
	}
	slices.SortFunc(found, func(a, b [2]string) int { return m.compare(a[0], b[0]) })
	if s.Backward {
		slices.Reverse(found)
	}
	return found
}

// world is a store beside what it should be.
type world struct {
	t        *testing.T
	path     string
	db       *DB
	plain    *Keyspace
	reversed *Keyspace
	models   [3]*model
	random   *rand.Rand
}

func (w *world) open() {
	w.db = open(w.t, w.path, &Options{Memory: 1 << 20, SegmentSize: 64 << 10, BlobThreshold: 2000})
	var err error
	w.plain, err = w.db.OpenKeyspace("plain")
	ok(w.t, err)
	w.reversed, err = w.db.OpenKeyspace("reversed")
	ok(w.t, err)
}

func (w *world) keyspaces() [3]*Keyspace { return [3]*Keyspace{w.db.Keyspace, w.plain, w.reversed} }

// key draws one of few keys, so that they meet; with bytes that are hard for prefixes.
func (w *world) key() []byte {
	alphabet := []byte{0, 'a', 'b', 0xff}
	key := make([]byte, w.random.IntN(5))
	for i := range key {
		key[i] = alphabet[w.random.IntN(len(alphabet))]
	}
	return key
}

func (w *world) value() []byte {
	length := w.random.IntN(60)
	if w.random.IntN(20) == 0 {
		length = w.random.IntN(9000)
	}
	return bytes.Repeat([]byte{byte(w.random.IntN(256))}, length)
}

func (w *world) bound() []byte {
	if w.random.IntN(3) == 0 {
		return nil
	}
	return w.key()
}

func (w *world) scan() Scan {
	s := Scan{From: w.bound(), To: w.bound(), Backward: w.random.IntN(2) == 0, KeysOnly: w.random.IntN(4) == 0}
	if w.random.IntN(2) == 0 {
		s.Prefix = w.key()
	}
	return s
}

func (w *world) checkScan(r Reader, m *model) {
	s := w.scan()
	var found [][2]string
	for entry, err := range r.Scan(s) {
		ok(w.t, err)
		found = append(found, [2]string{string(entry.Key), string(entry.Value)})
	}
	if expected := m.scan(s); !slices.Equal(found, expected) {
		at := 0
		for at < min(len(found), len(expected)) && found[at] == expected[at] {
			at++
		}
		w.t.Fatalf("%+v gives %d entries, not %d; from %d on %.500q, not %.500q", s, len(found), len(expected), at,
			fmt.Sprint(found[at:]), fmt.Sprint(expected[at:]))
	}
}

func (w *world) checkCursor(r Reader, m *model) {
	cursor, err := r.Cursor()
	ok(w.t, err)
	defer cursor.Close()
	sorted := m.scan(Scan{})
	at := -1 // none
	for range 6 {
		key := w.key()
		switch w.random.IntN(6) {
		case 0:
			cursor.First()
			at = 0
		case 1:
			cursor.Last()
			at = len(sorted) - 1
		case 2:
			cursor.Seek(key)
			at = slices.IndexFunc(sorted, func(e [2]string) bool { return m.compare(e[0], string(key)) >= 0 })
		case 3:
			cursor.SeekForPrev(key)
			at = len(m.scan(Scan{To: key})) - 1
			if _, is := m.values[string(key)]; is {
				at++
			}
		case 4:
			cursor.Next()
			if at >= 0 {
				at++
			}
		default:
			cursor.Prev()
			at--
		}
		if at < 0 || at >= len(sorted) {
			at = -1
		}
		ok(w.t, cursor.Err())
		if cursor.Valid() != (at >= 0) ||
			at >= 0 && (string(cursor.Key()) != sorted[at][0] || string(cursor.Value()) != sorted[at][1]) {
			w.t.Fatalf("the cursor is on %q, not at %d of %.500q", cursor.Key(), at, fmt.Sprint(sorted))
		}
	}
}

func (w *world) checkGets(r Reader, m *model) {
	asked := [][]byte{w.key(), w.key(), w.key()}
	values, err := r.MultiGet(asked...)
	ok(w.t, err)
	for i, key := range asked {
		expected, is := m.values[string(key)]
		has, err := r.Has(key)
		ok(w.t, err)
		if has != is || (values[i] != nil) != is || string(values[i]) != expected {
			w.t.Fatalf("%q: has %v, multi-get %.500q, not %.500q", key, has, values[i], expected)
		}
		value, err := r.Get(key)
		if !is {
			gives(w.t, err, ErrNotFound)
		} else if ok(w.t, err); string(value) != expected {
			w.t.Fatalf("%q has %.500q, not %.500q", key, value, expected)
		}
	}
}

func (w *world) write() {
	var batch Batch
	for range w.random.IntN(8) {
		n, key, value := w.random.IntN(3), w.key(), w.value()
		k := w.keyspaces()[n]
		if w.random.IntN(3) == 0 {
			batch.DeleteIn(k, key)
			delete(w.models[n].values, string(key))
		} else if n == 0 {
			batch.Put(key, value)
			w.models[0].values[string(key)] = string(value)
		} else {
			batch.PutIn(k, key, value)
			w.models[n].values[string(key)] = string(value)
		}
	}
	ok(w.t, w.db.Write(&batch))
}

func (w *world) load(n int) {
	m := &model{map[string]string{}, w.models[n].reverse}
	for range w.random.IntN(20) {
		m.values[string(w.key())] = string(w.value())
	}
	sorted := m.scan(Scan{})
	loaded, err := w.keyspaces()[n].BulkLoad(func(yield func([]byte, []byte) bool) {
		for _, entry := range sorted {
			if !yield([]byte(entry[0]), []byte(entry[1])) {
				return
			}
		}
	})
	ok(w.t, err)
	if loaded != uint64(len(sorted)) {
		w.t.Fatalf("loaded %d, not %d", loaded, len(sorted))
	}
	for key, value := range m.values {
		w.models[n].values[key] = value
	}
}

func (w *world) step(snapshot **Snapshot, then *[3]*model) {
	n := w.random.IntN(3)
	k, m := w.keyspaces()[n], w.models[n]
	switch choice := w.random.IntN(100); {
	case choice < 30:
		key, value := w.key(), w.value()
		ok(w.t, k.Put(key, value))
		m.values[string(key)] = string(value)
	case choice < 40:
		key := w.key()
		ok(w.t, k.Delete(key))
		delete(m.values, string(key))
	case choice < 55:
		w.write()
	case choice < 70:
		w.checkScan(k, m)
	case choice < 80:
		w.checkGets(k, m)
	case choice < 86:
		w.checkCursor(k, m)
	case choice < 92:
		if *snapshot == nil {
			var err error
			*snapshot, err = w.db.Snapshot()
			ok(w.t, err)
			*then = [3]*model{w.models[0].copy(), w.models[1].copy(), w.models[2].copy()}
			return
		}
		view, err := k.At(*snapshot)
		ok(w.t, err)
		w.checkScan(view, then[n])
		w.checkGets(view, then[n])
		w.checkCursor(view, then[n])
		ok(w.t, view.Close())
		if w.random.IntN(3) == 0 {
			ok(w.t, (*snapshot).Close())
			*snapshot = nil
		}
	case choice < 95:
		w.load(n)
	case choice < 97:
		ok(w.t, w.db.Flush())
	case choice < 98:
		ok(w.t, k.CompactRange(w.bound(), w.bound()))
	default:
		ok(w.t, w.db.Close())
		*snapshot = nil
		w.open()
	}
}

// Random operations on three keyspaces beside sorted maps. ESKER_SEED repeats a run, ESKER_OPS says how long it is.
func TestAStoreIsASortedMap(t *testing.T) {
	seed, operations := uint64(time.Now().UnixNano()), 3000
	if given, err := strconv.ParseUint(os.Getenv("ESKER_SEED"), 10, 64); err == nil {
		seed = given
	}
	if given, err := strconv.Atoi(os.Getenv("ESKER_OPS")); err == nil {
		operations = given
	}
	fmt.Printf("ESKER_SEED=%d\n", seed)
	w := &world{t: t, path: filepath.Join(t.TempDir(), "store"), random: rand.New(rand.NewPCG(seed, 0))}
	for i := range w.models {
		w.models[i] = &model{map[string]string{}, i == 2}
	}
	db := open(t, w.path, nil)
	for name, order := range map[string]Order{"plain": Bytewise, "reversed": Reverse} {
		_, err := db.CreateKeyspace(name, &KeyspaceOptions{Order: order})
		ok(t, err)
	}
	ok(t, db.Close())
	w.open()
	var snapshot *Snapshot
	var then [3]*model
	for range operations {
		w.step(&snapshot, &then)
	}
	if _, err := w.db.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
}
