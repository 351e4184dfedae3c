# Go's binding to `leveldb/c.h`, with its own tests.
# shellcheck shell=bash disable=SC2154,SC2034
suite() {
    about="Go github.com/jmhodges/levigo 1.0.0: its own tests"
    command -v go >/dev/null || apt_install golang-go || return
    apt_install libleveldb-dev || return
    local output
    mkdir "$run/fetch"
    (cd "$run/fetch" && go mod init fetch && go get github.com/jmhodges/levigo@v1.0.0) >/dev/null 2>&1 || return
    cp -r "$(cd "$run/fetch" && go list -m -f '{{.Dir}}' github.com/jmhodges/levigo)" "$run/levigo"
    chmod -R u+w "$run/levigo"
    output=$(cd "$run/levigo" &&
        CGO_LDFLAGS="-L$work/lib" go test -c -o levigo.test . &&
        with_library ./levigo.test -test.v 2>&1) || true
    tail -n 40 <<<"$output"
    passed=$(grep -c '^--- PASS' <<<"$output") || true
    total=$(grep -c '^=== RUN' <<<"$output") || true
}
