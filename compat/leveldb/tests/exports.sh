#!/usr/bin/env bash
# Compares what two builds of libleveldb export: each symbol of LevelDB's own that REFERENCE has OURS has too, but for
# those that not_exported.txt lists with the reason; and OURS exports nothing that is not LevelDB's.
#
#   exports.sh REFERENCE OURS
#
# Strong symbols; and the tables and type information of classes, which the compiler makes weak, but which programs that
# derive from them need. Templates of the standard library, which a compiler may or may not leave in, are nobody's.
set -euo pipefail
export LC_ALL=C
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
list=$here/not_exported.txt

# Kind of symbol and name, of those that are LevelDB's.
exported() { nm -DC --defined-only "$1" | cut -d" " -f2- | grep -E "$2"; }
own='^[TDBRVW] (typeinfo for |typeinfo name for |vtable for )?(leveldb::|leveldb_)'
names() { exported "$1" "$own" | cut -d" " -f2- | sort -u; }
# Types of a function's own, which nothing outside can name.
local_types='leveldb_[a-z_]*::'

status=0
excused=$(sed -n 's/^\([^#\t][^\t]*\)\t..*$/\1/p' "$list")
missing=$(comm -23 <(names "$1") <(names "$2") | grep -vE "$local_types" | grep -vxF -- "${excused:-no name}" || true)
[ -z "$missing" ] || {
    echo "error: $2 does not export, and $list does not excuse:"
    echo "$missing"
    status=1
}
foreign=$(nm -DC --defined-only "$2" | cut -d' ' -f2- | grep -vE "$own" || true)
[ -z "$foreign" ] || {
    echo "error: $2 exports what is not LevelDB's:"
    echo "$foreign"
    status=1
}
more=$(comm -13 <(names "$1") <(names "$2") | grep -vE "$local_types" || true)
[ -z "$more" ] || {
    echo "error: $2 exports what $1 does not:"
    echo "$more"
    status=1
}
wrong=$(comm -12 <(echo "${excused:-no name}" | sort) <(names "$2"))
[ -z "$wrong" ] || {
    echo "error: $list excuses what is exported: $wrong"
    status=1
}
[ "$(names "$1" | wc -l)" -gt 150 ] || {
    echo "error: $1 exports too little to compare with"
    status=1
}
[ $status -ne 0 ] || echo "exports: $(names "$1" | grep -cvE "$local_types") of $1, all there"
exit $status
