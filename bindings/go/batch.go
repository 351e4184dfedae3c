package esker

// #include "glue.h"
import "C"

import (
	"encoding/binary"
	"math"
)

// Batch is writes that are applied together or not at all, in the order they were added. The zero value is an empty one. One
// goroutine uses it at a time.
//
// It is memory of Go's and needs no closing; it goes to the library in one call, when it is written. What cannot be added, as a
// key that is too long, makes Write fail, which then writes nothing.
type Batch struct {
	operations []byte // see glue_write
	count      int
	keyspaces  []*Keyspace
	err        error
}

// Put adds: give a key of the default keyspace this value. Both are copied.
func (b *Batch) Put(key, value []byte) { b.add(0, key, value) }

// Delete adds: take the value of a key of the default keyspace away.
func (b *Batch) Delete(key []byte) { b.add(1, key, nil) }

// PutIn adds: give a key of a keyspace this value. Both are copied.
func (b *Batch) PutIn(k *Keyspace, key, value []byte) { b.add(b.number(k)*2, key, value) }

// DeleteIn adds: take the value of a key of a keyspace away.
func (b *Batch) DeleteIn(k *Keyspace, key []byte) { b.add(b.number(k)*2+1, key, nil) }

// Clear removes everything; the memory stays for the next use.
func (b *Batch) Clear() {
	clear(b.keyspaces)
	*b = Batch{operations: b.operations[:0], keyspaces: b.keyspaces[:0]}
}

// Len is how many writes the batch has.
func (b *Batch) Len() int { return b.count }

// Size is how many bytes of memory they take.
func (b *Batch) Size() int { return len(b.operations) }

func (b *Batch) add(what uint32, key, value []byte) {
	switch {
	case b.err != nil:
		return
	case len(key) > MaxKeyLen:
		b.err = invalid("a key of %d bytes is over the limit of %d bytes", len(key), MaxKeyLen)
	case len(value) > MaxValueLen:
		b.err = invalid("a value of %d bytes is over the limit of %d bytes; split it over several keys", len(value), MaxValueLen)
	case len(b.operations)+len(key)+len(value) > math.MaxUint32:
		b.err = invalid("a batch has less than 4 GiB; split it")
	}
	if b.err == nil {
		b.count++
		b.operations = binary.NativeEndian.AppendUint32(b.operations, what)
		b.operations = appendEntry(b.operations, key, value)
	}
}

// number is that of a keyspace in the batch: 1 is the first.
func (b *Batch) number(k *Keyspace) uint32 {
	for i, other := range b.keyspaces {
		if other == k {
			return uint32(i + 1)
		}
	}
	b.keyspaces = append(b.keyspaces, k)
	return uint32(len(b.keyspaces))
}

// appendEntry appends u32 key_len, u32 value_len, key, value.
func appendEntry(to, key, value []byte) []byte {
	to = binary.NativeEndian.AppendUint32(to, uint32(len(key)))
	to = binary.NativeEndian.AppendUint32(to, uint32(len(value)))
	to = append(to, key...)
	return append(to, value...)
}

// Write writes a batch with the store's durability: all of it or nothing. The batch stays as it is, to be written again or cleared.
func (db *DB) Write(b *Batch) error { return db.WriteWith(b, Default) }

// WriteWith writes a batch with a durability of its own.
func (db *DB) WriteWith(b *Batch, durability Durability) error {
	if b.err != nil {
		return b.err
	}
	if !db.h.enter() {
		return ErrClosed
	}
	defer db.h.leave()
	keyspaces := make([]*C.esker_keyspace, len(b.keyspaces)+1)
	for i, k := range b.keyspaces {
		if !k.h.enter() {
			return ErrClosed
		}
		defer k.h.leave()
		keyspaces[i] = k.c
	}
	r := C.glue_write(db.c, bytesC(b.operations), lenC(b.operations), &keyspaces[0], C.esker_durability(durability))
	return failure(r.code, r.error)
}
