# A node of a currency, which keeps blocks' index and unspent outputs in LevelDB: a chain of its own is made, the
# node killed, started again, and everything counted and verified.
# shellcheck shell=bash disable=SC2154,SC2034
suite() {
    about="Debian litecoind: a chain made, the node killed, its indexes rebuilt and compared"
    apt_install litecoind || return
    mkdir "$run/data"
    rpc_port=$(free_port tcp)
    start || return
    local to sums
    cli createwallet wallet >/dev/null
    to=$(cli getnewaddress)
    # From block 432 on a chain of this kind has other rules.
    check "300 blocks" generate 300 "$to"
    for _ in 1 2 3 4 5; do cli sendtoaddress "$to" 1 >/dev/null; done
    check "blocks with transfers" generate 10 "$to"
    sums=$(sums)
    check "outputs are counted" says '"txouts": 31' "$sums"
    check "the chain is verified" test "$(cli verifychain 4 0)" = true
    check "the node is ended" stop
    start || return
    check "the same after a restart" test "$(sums)" = "$sums"
    check "more blocks" generate 50 "$to"
    sums=$(sums)
    kill -KILL "$node" && wait "$node" || true
    start || return
    check "the chain is verified after kill -9" test "$(cli verifychain 4 0)" = true
    check "the node is ended again" stop
    # Indexes anew, from the blocks that the node keeps in files of its own.
    start -reindex || return
    wait_for_blocks
    local height
    height=$(cli getblockcount)
    check "indexes made anew" test "$height" -ge 360
    check "the chain is verified after that" test "$(cli verifychain 4 0)" = true
    check "the node is ended a last time" stop
}

cli() { litecoin-cli -regtest -datadir="$run/data" -rpcport="$rpc_port" -rpcuser=user -rpcpassword=word "$@" 2>&1; }
sums() { cli gettxoutsetinfo | grep -v disk_size; }
generate() { test "$(cli generatetoaddress "$1" "$2" | grep -c '^  "')" -eq "$1"; }

start() {
    start_with_library /usr/lib/litecoin/litecoind -regtest -datadir="$run/data" -listen=0 -server -fallbackfee=0.001 \
        -rpcport="$rpc_port" -rpcuser=user -rpcpassword=word "$@" >"$run/node.log" 2>&1
    node=$!
    wait_for_node >/dev/null || { tail "$run/node.log"; return 1; }
    [ -z "$(cli listwallets | tr -d '[] \n')" ] && cli loadwallet wallet >/dev/null || true
}

# Until the node answers.
wait_for_node() {
    local i=0
    until cli getblockcount >/dev/null; do
        [ $((i += 1)) -le 300 ] && kill -0 "$node" || return 1
        sleep 0.2
    done
}

stop() { cli stop >/dev/null && wait "$node"; }

# Until a rebuilding has come as far as the blocks go.
wait_for_blocks() {
    local i=0
    until [ "$(cli getblockcount)" -ge 360 ] || [ $((i += 1)) -gt 100 ]; do sleep 0.2; done
}
