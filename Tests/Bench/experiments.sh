# What happens to a daemon of its own while clients use it: `start_EXPERIMENT`, then `EXPERIMENT_round ROUND`.
# shellcheck shell=bash

# steady SERVER COLLECTION OPERATION [OPTION...]: four connections, each of which sends a request every 4 ms, so that
# the load does not depend on the latency.
steady() {
    "$bench" load --protocol crudd --socket "$work/$1.sock" --collection "$2" --operation "$3" \
        --ids "$([[ $3 == read ]] && echo random || echo rising)" --records "$records" --value-bytes "$value_bytes" \
        --first "$first" --seed "$first" --connections 4 --every 4 --warm-up 0.5 --seconds "$seconds" "${@:4}" \
        >>"$lines"
}
# clients SERVER COLLECTION OPERATIONS [OPTION...]: steady load with all of these, concurrently.
clients() {
    local operation loads=() load
    for operation in $3; do
        first=$((first + 10000000))
        steady "$1" "$2" "$operation" "${@:4}" & loads+=($!)
    done
    for load in "${loads[@]}"; do wait "$load"; done
}

# long_run LOAD [READER-OPTION...]: creates, with concurrent readers if there are options for them.
long_run() {
    local beside=$1 reader=
    shift
    if (($# > 0)); then
        load crudd read --connections 16 --warm-up 0 --seconds "$((long + 2))" "$@" >/dev/null &
        reader=$!
    fi
    first=$((first + 100000000))
    load crudd create --ids rising --connections 16 --first "$first" --seconds "$long" --pace \
        --watch "$work/crudd/main.sqlite-wal" --beside "$beside" >>"$lines"
    if [[ -n $reader ]]; then wait "$reader"; fi
}

# A daemon with three backends: inline, in a child, and in a child that is killed.
start_kills() {
    local backend
    configure kills <<END
backends:
  inline: {plugin: sqlite, options: {path: $work/kills/inline.sqlite}}
  isolated: {plugin: sqlite, isolation: process, options: {path: $work/kills/isolated.sqlite}}
  killed: {plugin: sqlite, isolation: process, options: {path: $work/kills/killed.sqlite}}
collections: {inline: {backend: inline}, isolated: {backend: isolated}, killed: {backend: killed}}
END
    serve_crudd kills
    for backend in inline isolated killed; do fill_all crudd kills --collection "$backend"; done
}
# The child of the backend `killed`, recognised by its open database; waits until there is one.
victim() {
    local child links try
    for ((try = 0; try < 100; try++)); do
        for child in $(pgrep -P "${servers[kills]}" crudd-plugin-ho || true); do
            links=$(readlink "/proc/$child/fd/"* 2>/dev/null || true)
            if grep -q "/killed.sqlite$" <<<"$links"; then
                echo "$child"
                return
            fi
        done
        sleep 0.05
    done
    say "bench: the killed child was not restarted"
    return 70
}
# beside_kills KILLS ROUND: load on all backends, and so many kills meanwhile.
beside_kills() {
    local backend loads=() kill child load
    for backend in inline isolated; do
        first=$((first + 20000000))
        clients kills "$backend" "read create" --target "$backend" --kills "$1" --round "$2" & loads+=($!)
    done
    first=$((first + 20000000))
    steady kills killed create --target killed --kills "$1" --round "$2" --may-fail & loads+=($!)
    sleep 0.6
    for ((kill = 0; kill < $1; kill++)); do
        child=$(victim)
        kill -KILL "$child"
        sleep 0.5
    done
    for load in "${loads[@]}"; do wait "$load"; done
}
kills_round() {
    beside_kills 0 "$1"
    beside_kills "$((2 * seconds - 1))" "$1"
}

# A daemon with two SQLite files, in one of which is the collection `moved`.
start_moves() {
    configure_moves first
    serve_crudd moves
    fill_all crudd moves --collection moved
}
# configure_moves BACKEND: where the collection is to be.
configure_moves() {
    configure moves <<END
backends:
  first: {plugin: sqlite, options: {path: $work/moves/first.sqlite}}
  second: {plugin: sqlite, options: {path: $work/moves/second.sqlite}}
collections: {moved: {backend: $1}}
END
}
# move [OPTION...]: moves it to the other file.
move() {
    configure_moves "$(grep -q 'moved: {backend: first}' "$work/moves.yaml" && echo second || echo first)"
    "$bench" move --socket "$work/moves.sock" "$@" >>"$lines"
}
moves_round() {
    local beside=(moves moved "read create" --experiment move --round "$1") moving
    move
    clients "${beside[@]}"
    move --seconds "$((seconds + 1))" --beside "4 readers and 4 writers" & moving=$!
    clients "${beside[@]}" --disturbed
    wait "$moving"
}

# A daemon with a collection in a child, whose calls must not take longer than a second.
start_indexes() {
    configure_indexes
    serve_crudd indexes
    fill_all crudd indexes
}
# configure_indexes [INDEX,...]: the indexes of the collection.
configure_indexes() {
    configure indexes <<END
backends:
  main:
    plugin: sqlite
    isolation: process
    limits: {call_timeout: 1s}
    options: {path: $work/indexes/main.sqlite}
collections: {bench: {backend: main, indexes: [${1:-}]}}
END
}
indexes_round() {
    local beside=(indexes bench read --experiment indexes --round "$1") building
    clients "${beside[@]}"
    configure_indexes number,group,name
    "$bench" index --socket "$work/indexes.sock" --property number --property group --property name >>"$lines" &
    building=$!
    clients "${beside[@]}" --disturbed
    wait "$building"
    configure_indexes
    reload indexes
}

# A daemon with a collection of records that stay, and one of records that expire, in the same file.
start_expiry() {
    configure expiry <<END
backends:
  main: {plugin: sqlite, options: {path: $work/expiry/main.sqlite}}
collections: {bench: {backend: main}, expiring: {backend: main}}
END
    serve_crudd expiry
    fill_all crudd expiry
}
# gone INSTANT: waits until the file has none of the records that expire then, in milliseconds since 1970.
gone() {
    python3 - "$1" "$records" "$work/expiry/main.sqlite" "/proc/${servers[expiry]}/status" <<'END' >>"$lines"
import json, sqlite3, sys, time

instant, records, file, status = int(sys.argv[1]) / 1000, int(sys.argv[2]), sys.argv[3], sys.argv[4]

def resident():
    with open(status) as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))

before = most = resident()
database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
while database.execute("SELECT EXISTS (SELECT 1 FROM expiring)").fetchall()[0][0]:
    if time.time() > instant + 600:
        sys.exit("bench: there are still expired records after 600 s")
    time.sleep(0.05)
    most = max(most, resident())
print(json.dumps({
    "kind": "expiration", "records": records, "seconds": time.time() - instant, "residentBytes": most - before}))
END
}
expiry_round() {
    local beside=(expiry bench read --experiment expiry --round "$1") instant removal
    clients "${beside[@]}"
    instant=$("$bench" expire --socket "$work/expiry.sock" --records "$records" --value-bytes "$value_bytes" \
        --seconds "$((records / 10000 + 5))")
    gone "$instant" & removal=$!
    # Half a second is the clients' warm-up.
    sleep "$(awk -v instant="$instant" -v now="$(date +%s%3N)" 'BEGIN {
        seconds = (instant - now) / 1000 - 0.5
        print (seconds > 0 ? seconds : 0)
    }')"
    clients "${beside[@]}" --disturbed
    wait "$removal"
}

# Four daemons that share a schema of one PostgreSQL server, and what their clients do without them.
start_shared() {
    local number
    if [[ -z ${servers[postgresql]:-} ]]; then start_postgresql; fi
    for number in 1 2 3 4; do
        configure "shared$number" <<END
backends:
  main:
    plugin: postgresql
    options: {connection: "host=$work/postgresql user=postgres dbname=postgres", schema: shared, shared: true}
collections:
  changed: {backend: main, changes: true}
  followed: {backend: main, changes: true}
  "*": {backend: main}
END
        serve_crudd "shared$number"
    done
    fill_all crudd shared1
    fill crudd shared1 --collection changed --records 1 --requests 1 --connections 1
    fill crudd shared1 --collection followed --records 1 --requests 1 --connections 1
    fill crudd shared1 --collection counters --records 1 --requests 1 --connections 1
    "$postgresql/psql" -q -h "$work/postgresql" -U postgres <<'END'
CREATE TABLE counters (id text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO counters VALUES ('1000000000', 0);
VACUUM ANALYZE;
CHECKPOINT;
END
    cat >"$work/upsert.sql" <<'END'
\set id random(1000000000, 1000000000 + :records - 1)
INSERT INTO records VALUES (:id, :value) ON CONFLICT (id) DO UPDATE SET value = excluded.value;
END
    echo "UPDATE counters SET value = value + 1 WHERE id = '1000000000' RETURNING value" >"$work/increment.sql"
}
# What the workload does whose figures are those of an operation: creates in a collection with a feed of changes, or one
# that is followed as well.
workload_of() { if [[ $1 == changed || $1 == followed ]]; then echo create; else echo "$1"; fi; }
# The collection of an operation.
shared_collection_of() {
    case $1 in
        increment) echo counters ;;
        changed | followed) echo "$1" ;;
        *) echo bench ;;
    esac
}
# together OPERATION DAEMONS CONNECTIONS ROUND: as many connections to so many daemons; 0: to the server.
together() {
    local number loads=() followers=() load pace parts=$work/parts workload
    workload=$(workload_of "$1")
    mkdir -p "$parts"
    if (($2 == 0)); then
        pace=$(pgbench "$workload" rising "$3" "$seconds" | sed -n 's/^tps = \([0-9.]*\).*/\1/p')
    else
        for ((number = 1; number <= $2; number++)); do
            first=$((first + 10000000))
            if [[ $1 == followed ]]; then
                "$build/crudctl" --socket "$work/shared$number.sock" watch followed --after now --no-items >/dev/null &
                followers+=($!)
            fi
            "$bench" load --protocol crudd --socket "$work/shared$number.sock" --operation "$workload" \
                --collection "$(shared_collection_of "$1")" \
                --ids "$([[ $workload == create ]] && echo rising || echo random)" \
                --records "$([[ $1 == increment ]] && echo 1 || echo "$records")" --value-bytes "$value_bytes" \
                --first "$first" --seed "$first" --connections "$(($3 / $2))" --seconds "$seconds" \
                >"$parts/$number" & loads+=($!)
        done
        for load in "${loads[@]}"; do wait "$load"; done
        if ((${#followers[@]} > 0)); then
            kill "${followers[@]}"
            wait "${followers[@]}" || true
        fi
        pace=$(cat "$parts"/* | sed -n 's/.*"requestsPerSecond":\([0-9.]*\).*/\1/p' |
            awk '{ sum += $1 } END { print sum }')
        rm "$parts"/*
    fi
    printf '{"kind":"shared","operation":"%s","daemons":%d,"connections":%d,"round":%d,"requestsPerSecond":%s}\n' \
        "$1" "$2" "$3" "$4" "$pace" >>"$lines"
}
shared_round() {
    local operation daemons
    for operation in read create changed followed upsert increment; do
        for daemons in 0 1 2 4; do together "$operation" "$daemons" 16 "$1"; done
    done
}

# Each number of collections has a daemon of its own.
start_collections() { :; }
collections_round() {
    local count name
    for count in 10 100 10000; do
        name=collections-$1-$count
        configure "$name" <<END
limits: {collections: 20000}
backends:
  main: {plugin: sqlite, options: {path: $work/$name/main.sqlite}}
collections:
  "*": {backend: main}
  changed: {backend: main}
END
        "$bench" collections --count "$count" --socket "$work/$name.sock" --notify-socket "$work/notify.sock" \
            --file "$work/$name.yaml" "$build/crudd" --config "$work/$name.yaml" 2>>"$work/$name.log" >>"$lines"
    done
}
