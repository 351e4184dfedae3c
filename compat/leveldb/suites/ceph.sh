# Ceph's tool for key-value stores, which uses LevelDB's C++ interface.
# shellcheck shell=bash disable=SC2154,SC2034
suite() {
    about="Debian ceph-base, ceph-kvstore-tool: keys written, listed, read, compacted, removed"
    install_without_service ceph-base ceph-crash && apt_install python3-plyvel || return
    local db=$run/db n
    # The tool opens stores that are there.
    with_library /usr/bin/python3 - "$db" <<'END' || return
import plyvel, sys
db = plyvel.DB(sys.argv[1], create_if_missing=True)
for n in range(1000):
    db.put(b"old\0key%03d" % n, b"value %d" % n)
db.close()
END
    tool() { with_library ceph-kvstore-tool leveldb "$db" "$@" 2>>"$run/errors"; }
    for n in 1 2 3; do check "set ver $n" tool set new "key$n" ver "$n"; done
    head -c 100000 /dev/urandom >"$run/in"
    check "set a value from a file" tool set new large in "$run/in"
    check "get it" tool get new large out "$run/out"
    check "it is the same" cmp "$run/in" "$run/out"
    check "list one prefix" test "$(tool list new | grep -c '^new')" -eq 4
    check "list all" test "$(tool list | grep -c '^old')" -eq 1000
    check "a key is there" says "exists" "$(tool exists old key007)"
    check "another is not" says "does not exist" "$(tool exists old nothing || true)"
    check "a checksum of an entry" says "crc" "$(tool crc old key007)"
    check "compact" tool compact
    check "compact a prefix" tool compact-prefix old
    check "remove a key" tool rm old key007
    check "remove a prefix" tool rm-prefix new
    check "what is left" test "$(tool list | grep -c '^old')" -eq 999
    check "the prefix is gone" test "$(tool list new | grep -c '^new')" -eq 0
}
