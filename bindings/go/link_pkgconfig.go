//go:build esker_pkgconfig

package esker

// The library as `scripts/install.sh` or the Debian package installed it.

// #cgo pkg-config: esker
import "C"
