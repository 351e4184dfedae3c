# The crate `leveldb`, with its own tests. `leveldb-sys` would build LevelDB; a `links` override gives it ours.
# shellcheck shell=bash disable=SC2154,SC2034
suite() {
    about="crate leveldb 0.8.6 with leveldb-sys 2.0.9: its own tests"
    local host output source
    host=$(rustc -vV | sed -n 's/^host: //p')
    mkdir -p "$run/.cargo" "$run/fetch/src"
    cat >"$run/.cargo/config.toml" <<END
[target.$host.leveldb]
rustc-link-search = ["$work/lib"]
rustc-link-lib = ["leveldb"]
END
    cat >"$run/fetch/Cargo.toml" <<'END'
[package]
name = "fetch"
version = "0.0.0"
edition = "2021"
[dependencies]
leveldb = "=0.8.6"
leveldb-sys = "=2.0.9"
END
    touch "$run/fetch/src/lib.rs"
    source=$(cd "$run/fetch" && cargo metadata --format-version 1 |
        grep -o '"manifest_path":"[^"]*/leveldb-0\.8\.6/Cargo\.toml"' | cut -d'"' -f4)
    cp -r "$(dirname "$source")" "$run/leveldb"
    chmod -R u+w "$run/leveldb"
    output=$(cd "$run/leveldb" && cargo update -q -p leveldb-sys --precise 2.0.9 &&
        cargo test -q --test tests --no-run &&
        with_library cargo test --test tests 2>&1) || true
    tail -n 40 <<<"$output"
    passed=$(sed -n 's/^test result:.* \([0-9]*\) passed.*/\1/p' <<<"$output")
    total=$(sed -n 's/^running \([0-9]*\) tests*/\1/p' <<<"$output")
    passed=${passed:-0} total=${total:-0}
}
