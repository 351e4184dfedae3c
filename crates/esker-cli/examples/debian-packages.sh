#!/bin/sh
# Loads the package index of a Debian or Ubuntu system, about 60,000 stanzas of 0.3 to 5 KB, and
# looks into it.
#
#   ./debian-packages.sh [DB [FILE]]
#
# FILE is a package index in the same form, for a machine without apt.
#
# The key is package/version, so that all versions of a package stand together and a prefix finds
# them. The value is the stanza as apt prints it, without the empty line behind it.
set -eu

db=${1:-./debian-packages.db}
file=${2:-}
esker=${ESKER:-esker}

index() {
    if [ -n "$file" ]; then cat "$file"; else apt-cache dumpavail; fi
}

# Stanzas to TSV. In paragraph mode (RS="") awk takes everything up to an empty line as one record;
# tab, newline, carriage return and backslash are escaped as `esker load --help` says, the
# backslash first so that no escape is escaped again. "&&" is the matched text twice: a way to write
# two backslashes that all awks agree on.
stanzas_to_tsv() {
    # Bytes, not characters: package descriptions are UTF-8, but nothing here depends on it.
    LC_ALL=C awk '
        BEGIN { RS = ""; FS = "\n" }
        {
            package = version = ""
            for (i = 1; i <= NF; i++) {
                if (package == "" && index($i, "Package: ") == 1) package = substr($i, 10)
                if (version == "" && index($i, "Version: ") == 1) version = substr($i, 10)
            }
            if (package == "") next
            gsub(/\\/, "&&")
            gsub(/\t/, "\\t")
            gsub(/\r/, "\\r")
            gsub(/\n/, "\\n")
            print package "/" version "\t" $0
        }'
}

echo "== load"
index | stanzas_to_tsv | "$esker" load "$db" --create

echo "== how many packages, and how many of them are Python libraries"
"$esker" count "$db"
"$esker" count "$db" --prefix python3-

# Any package will do where there is no bash.
package=bash
if [ -z "$("$esker" scan "$db" --prefix bash/ --keys-only --limit 1)" ]; then
    package=$("$esker" scan "$db" --keys-only --limit 1 | cut -d / -f 1)
fi
echo "== the versions of $package"
"$esker" scan "$db" --prefix "$package/" --keys-only

echo "== the first of them, as apt shows it"
key=$("$esker" scan "$db" --prefix "$package/" --keys-only --limit 1)
"$esker" get "$db" "$key"
echo

echo "== the last five packages of all"
"$esker" scan "$db" --reverse --limit 5 --keys-only

echo "== the shape of the store"
"$esker" stats "$db"
