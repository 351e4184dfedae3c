# The binding for .NET as Debian ships it, under mono; the program is ours.
# shellcheck shell=bash disable=SC2154,SC2034
suite() {
    about="Debian libleveldb1.2-cil under mono: a program of ours"
    apt_install libleveldb1.2-cil mono-mcs mono-runtime || return
    local dll=/usr/lib/cli/leveldb-sharp-1.2/leveldb-sharp.dll
    mcs -out:"$run/store.exe" -r:$dll "$here/Store.cs" && cp $dll $dll.config "$run" || return
    local output
    output=$(cd "$run" && with_library mono store.exe "$run/db" 2>&1) || true
    echo "$output"
    passed=$(grep -c '^ok ' <<<"$output") || true
    total=$(sed -n 's/^1\.\.//p' <<<"$output")
    total=${total:-1}
}
