//go:build !esker_pkgconfig

package esker

// The library as `cargo build --release -p esker-capi` leaves it in this repository. For one that is elsewhere, set
// CGO_CFLAGS and CGO_LDFLAGS, or build with -tags esker_pkgconfig.

// #cgo CFLAGS: -I${SRCDIR}/../../crates/esker-capi/include
// #cgo LDFLAGS: -L${SRCDIR}/../../target/release -l:libesker_capi.a -lpthread -ldl -lm
import "C"
