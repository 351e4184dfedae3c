#!/usr/bin/env bash
# Builds the library, and checks and tests the Go package, also under the race detector. What is missing is installed with apt.
# ESKER_QUICK=1: only the tests, with the library that those of the workspace are built with. ESKER_CAMPAIGN=1 makes the random
# operations more.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. scripts/setup.sh
exec </dev/null
need_build_tools

command -v go >/dev/null || apt_install golang-go
need_go=$(sed -n 's/^go //p' bindings/go/go.mod)
have_go=$(go env GOVERSION) && have_go=${have_go#go}
[ "$(printf '%s\n' "$need_go" "$have_go" | sort -V | head -n 1)" = "$need_go" ] || {
    echo "error: Go $have_go is too old; https://go.dev/dl has $need_go and newer" >&2
    exit 1
}

if [ -n "${ESKER_QUICK:-}" ]; then
    # As all tests are built, so that nothing is compiled a second time.
    cargo test --locked --workspace --no-run --test programs
    cd bindings/go
    export CGO_LDFLAGS="-L$(target_dir)/debug/deps ${CGO_LDFLAGS:-}"
    go vet ./... && go test -count=1 -timeout 300s ./...
    exit
fi

cargo build --release --locked -p esker-capi
lib=$(target_dir)/release
cd bindings/go
# Where the target directory is another than the package looks in.
[ "$lib" -ef ../../target/release ] || export CGO_LDFLAGS="-L$lib ${CGO_LDFLAGS:-}"

status=0
unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { echo "not formatted: $unformatted"; status=1; }
go vet ./... || status=1
# go does not see when the library changes.
if [ "${ESKER_CAMPAIGN:-}" = 1 ]; then
    ESKER_OPS=${ESKER_OPS:-100000} go test -count=1 -timeout 1200s ./... || status=1
    ESKER_OPS=${ESKER_OPS:-30000} go test -count=1 -timeout 1200s -race ./... || status=1
else
    go test -count=1 -timeout 300s ./... || status=1
    ESKER_OPS=${ESKER_OPS:-1000} go test -count=1 -timeout 300s -race ./... || status=1
fi
exit $status
