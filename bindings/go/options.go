package esker

// #include "glue.h"
// #include <stdlib.h>
import "C"

// Durability says when a write counts as done.
type Durability int32

const (
	// Default is what Options.Durability says, or Buffered.
	Default Durability = C.ESKER_DURABILITY_DEFAULT
	// Buffered writes are done when they are in the page cache: they survive a killed process, not a power cut.
	Buffered Durability = C.ESKER_DURABILITY_BUFFERED
	// Synced writes are done when they are on the device, and with them everything written before.
	Synced Durability = C.ESKER_DURABILITY_SYNCED
)

// Compression says how values are compressed in tables.
type Compression int32

const (
	CompressionDefault Compression = iota // LZ4, or for a keyspace what the store has
	CompressionNone
	CompressionLZ4
	CompressionZstd
)

// Order is an order of keys. Orders of the program's own are not to be had from Go: the library asks them in its own threads
// under locks, where a call into Go has no place.
type Order int32

const (
	// OrderDefault is Bytewise, or for a store that is there, the one it was made with.
	OrderDefault Order = iota
	// Bytewise is the order of bytes.Compare.
	Bytewise
	// Reverse is that the other way round.
	Reverse
)

// Options say how to open a store. The zero value, or nil, takes the defaults.
type Options struct {
	Memory         uint64      // what the store may use for itself, in bytes: 1 MiB at least, 128 MiB by default
	Durability     Durability  // of writes that name none: Buffered by default
	MustExist      bool        // where there is no store it is ErrNotAStore, not a new store
	ErrorIfExists  bool        // where there is a store it is ErrStoreExists
	ParanoidChecks bool        // verify all tables while opening, which then reads the whole store
	ReadOnly       bool        // write nothing; writes give ErrReadOnly
	NoFlushOnClose bool        // closing leaves what is in memory in the log, which the next open recovers; nothing is lost
	Compression    Compression // of keyspaces that have none of their own
	BlockSize      int         // smallest block of a table, in bytes: a multiple of 4096 up to 65536; 4096 by default
	SegmentSize    uint64      // to which log segments grow, in bytes: 64 KiB to 4 GiB; by default a quarter of Memory up to 32 MiB, a 16th from 512 MiB on up to 64 MiB, a 128th from 8 GiB on
	BlobThreshold  int         // from how many bytes on a value stays in the log: 64 at least, 4096 by default
	Order          Order       // of the default keyspace, fixed when the store is made
}

// KeyspaceOptions say how to make a keyspace. The zero value, or nil, takes the defaults.
type KeyspaceOptions struct {
	Compression   Compression // that of the store by default
	BlobThreshold int         // from how many bytes on a value stays in the log; that of the store by default
	Order         Order       // Bytewise by default
}

// setting is one call of a setter, made only where the program set something.
type setting struct {
	name  string
	given any
	wrong bool
}

// check gives the first setting that was refused.
func check(settings ...setting) error {
	for _, s := range settings {
		if s.wrong {
			return invalid("option %s cannot be %v", s.name, s.given)
		}
	}
	return nil
}

// inC makes the library's options of o, for esker_options_free.
func (o *Options) inC() (*C.esker_options, error) {
	if o == nil {
		o = &Options{}
	}
	c := C.esker_options_new()
	bad := func(code C.esker_code) bool { return code != C.ESKER_OK }
	err := check(
		setting{"Memory", o.Memory, o.Memory != 0 && bad(C.esker_options_set_memory(c, C.uint64_t(o.Memory)))},
		setting{"Durability", o.Durability, bad(C.esker_options_set_durability(c, C.esker_durability(o.Durability)))},
		setting{"MustExist", o.MustExist, bad(C.esker_options_set_create_if_missing(c, C.bool(!o.MustExist)))},
		setting{"ErrorIfExists", o.ErrorIfExists, bad(C.esker_options_set_error_if_exists(c, C.bool(o.ErrorIfExists)))},
		setting{"ParanoidChecks", o.ParanoidChecks, bad(C.esker_options_set_paranoid_checks(c, C.bool(o.ParanoidChecks)))},
		setting{"ReadOnly", o.ReadOnly, bad(C.esker_options_set_read_only(c, C.bool(o.ReadOnly)))},
		setting{"NoFlushOnClose", o.NoFlushOnClose, bad(C.esker_options_set_flush_on_close(c, C.bool(!o.NoFlushOnClose)))},
		setting{"Compression", o.Compression, o.Compression != 0 &&
			bad(C.esker_options_set_compression(c, C.esker_compression(o.Compression-1)))},
		setting{"BlockSize", o.BlockSize, o.BlockSize != 0 && bad(C.esker_options_set_block_size(c, size(o.BlockSize)))},
		setting{"SegmentSize", o.SegmentSize, o.SegmentSize != 0 &&
			bad(C.esker_options_set_segment_size(c, C.uint64_t(o.SegmentSize)))},
		setting{"BlobThreshold", o.BlobThreshold, o.BlobThreshold != 0 &&
			bad(C.esker_options_set_blob_threshold(c, size(o.BlobThreshold)))},
		setting{"Order", o.Order, o.Order != 0 && bad(C.esker_options_set_order(c, C.esker_order(o.Order-1)))},
	)
	if err != nil {
		C.esker_options_free(&c)
	}
	return c, err
}

// inC makes the library's options of o, for esker_keyspace_options_free.
func (o *KeyspaceOptions) inC() (*C.esker_keyspace_options, error) {
	if o == nil {
		o = &KeyspaceOptions{}
	}
	c := C.esker_keyspace_options_new()
	bad := func(code C.esker_code) bool { return code != C.ESKER_OK }
	err := check(
		setting{"Compression", o.Compression, o.Compression != 0 &&
			bad(C.esker_keyspace_options_set_compression(c, C.esker_compression(o.Compression-1)))},
		setting{"BlobThreshold", o.BlobThreshold, o.BlobThreshold != 0 &&
			bad(C.esker_keyspace_options_set_blob_threshold(c, size(o.BlobThreshold)))},
		setting{"Order", o.Order, o.Order != 0 && bad(C.esker_keyspace_options_set_order(c, C.esker_order(o.Order-1)))},
	)
	if err != nil {
		C.esker_keyspace_options_free(&c)
	}
	return c, err
}

// size is a length for C; what is below 0 becomes 0, which no option may be.
func size(n int) C.size_t { return C.size_t(max(n, 0)) }
