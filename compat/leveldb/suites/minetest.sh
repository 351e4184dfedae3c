# The game's server, with worlds in LevelDB through its C++ interface: it makes a world, opens it again, and moves it.
# shellcheck shell=bash disable=SC2154,SC2034
suite() {
    about="Debian minetest-server: a world made, opened again after kill -9, moved to SQLite and back"
    install_without_service minetest-server minetest-server && apt_install sqlite3 || return
    local world=$run/world backend
    mkdir -p "$world"
    for backend in backend auth_backend player_backend mod_storage_backend; do
        # Not all of them know LevelDB.
        case $backend in mod_storage_backend) echo "$backend = sqlite3" ;; *) echo "$backend = leveldb" ;; esac
    done >"$world/world.mt"
    echo "gameid = devtest" >>"$world/world.mt"
    # Writes what it has every second; blocks around the origin are made and kept.
    printf '%s\n' 'server_map_save_interval = 1' 'bind_address = 127.0.0.1' 'mg_name = v7' \
        'secure.trusted_mods = made' >"$run/minetest.conf"
    mkdir -p "$world/worldmods/made"
    cat >"$world/worldmods/made/init.lua" <<'END'
minetest.after(0, function()
    local from, to = vector.new(-80, -80, -80), vector.new(80, 80, 80)
    minetest.emerge_area(from, to, function(_, _, left)
        if left == 0 then
            for x = -20, 20 do minetest.set_node(vector.new(x, 30, 0), {name = "mapgen_stone"}) end
            minetest.after(3, function() print("the area is made") end)
        end
    end)
end)
END
    echo "name = made" >"$world/worldmods/made/mod.conf"
    check "makes a world" serve 60 "the area is made" KILL
    local blocks
    check "opens it again" serve 60 "the area is made" INT
    check "moves it to SQLite" server --migrate sqlite3
    blocks=$(sqlite3 "$world/map.sqlite" 'select count(*) from blocks') || blocks=0
    check "which has its blocks ($blocks)" test "$blocks" -gt 500
    rm -rf "$world/map.db"
    check "moves it back" server --migrate leveldb
    rm -f "$world/map.sqlite"
    check "and to SQLite again" server --migrate sqlite3
    check "with all blocks" test "$(sqlite3 "$world/map.sqlite" 'select count(*) from blocks')" -eq "$blocks"
}

server() {
    with_library timeout 120 /usr/games/minetestserver --world "$run/world" --config "$run/minetest.conf" "$@" \
        >"$run/server.log" 2>&1 || { tail "$run/server.log"; return 1; }
}

# Serves until a line is printed, at most so many seconds, and ends with a signal.
serve() {
    local seconds=$1 line=$2 signal=$3 pid i=0
    start_with_library /usr/games/minetestserver --world "$run/world" --gameid devtest --config "$run/minetest.conf" \
        --port "$(free_port udp)" >"$run/server.log" 2>&1
    pid=$!
    until grep -qsF "$line" "$run/server.log" || [ $((i += 1)) -gt $((seconds * 5)) ] || ! kill -0 $pid 2>/dev/null; do
        sleep 0.2
    done
    kill -s "$signal" $pid
    wait $pid || true
    grep -qF "$line" "$run/server.log" || { tail "$run/server.log"; return 1; }
}
