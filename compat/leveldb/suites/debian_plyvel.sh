# The Python binding as Debian ships it, a binary that was linked to Debian's LevelDB; the tests of its source release.
# shellcheck shell=bash disable=SC2154,SC2034
. "$here/plyvel.sh"

suite() {
    apt_install python3-plyvel python3-pytest || return
    local version
    version=$(dpkg-query -W -f='${Version}' python3-plyvel | cut -d- -f1)
    misses=1 # as in plyvel.sh
    about="Debian python3-plyvel $version, the binary: its own tests"
    plyvel_source "$version" || return
    plyvel_tests /usr/bin/python3
}
