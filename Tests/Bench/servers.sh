# The servers: `start_TARGET` starts a target of its own, or adds what it needs to that of another one, and fills it.
# shellcheck shell=bash

# The targets that are a collection, or a setting, of the daemon `crudd`.
declare -A daemon_of=([changes]=crudd [sleeping]=crudd [expiring]=crudd)
# server_of TARGET-OPERATION: the server's name; its socket is that name with .sock.
server_of() {
    local target=${1%-*}
    case $1 in
        redis-create | redis-upsert) echo redis_aof ;;
        *) echo "${daemon_of[$target]:-$target}" ;;
    esac
}
# collection_of TARGET-OPERATION
collection_of() {
    case $1 in
        *-query) echo indexed ;;
        changes-*) echo changed ;;
        expiring-*) echo expiring ;;
        *) echo bench ;;
    esac
}
# The server and its children.
processes_of() {
    echo "${servers[$1]}"
    pgrep -P "${servers[$1]}" crudd-plugin-ho || true
}
# resident SERVER: its memory, in bytes.
resident() { echo $(($(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/${servers[$1]}/status") * 1024)); }

# serve NAME COMMAND...: a server in the background.
serve() {
    "${@:2}" >"$work/$1.log" 2>&1 &
    servers[$1]=$!
}
# configure NAME: a daemon's configuration; its backends and collections come from standard input.
configure() {
    mkdir -p "$work/$1"
    printf '%s\n' "state_directory: $work/$1" "socket: {path: $work/$1.sock}" \
        "plugins: {directories: [$work/plugins]}" >"$work/$1.yaml"
    cat >>"$work/$1.yaml"
}
serve_crudd() { serve "$1" "$build/crudd" --config "$work/$1.yaml"; }
# reload NAME: the daemon reads its configuration again.
reload() { "$build/crudctl" --socket "$work/$1.sock" reload >/dev/null; }

# fill PROTOCOL SERVER [OPTION...]: writes the data set, reads it and compares every byte.
fill() {
    local common=(--protocol "$1" --socket "$work/$2.sock" --ids rising --records "$records"
        --value-bytes "$value_bytes" --connections 4 "${@:3}")
    say "filling $2"
    "$bench" load "${common[@]}" --operation create --depth 128 >/dev/null
    "$bench" load "${common[@]}" --operation read --depth 16 --check-all >/dev/null
}
# fill_all PROTOCOL SERVER [OPTION...]: the data set of most rows.
fill_all() { fill "$1" "$2" --requests "$records" "${@:3}"; }
# fill_items PROTOCOL SERVER [OPTION...]: records of other sizes, in collections of their own. Their ids are not those
# of others, for Redis has no collections.
fill_items() {
    local size
    for size in "${!items[@]}"; do
        fill "$@" $(items_options "$size") --requests "${items[$size]}" --first "$(items_offset "$size")"
    done
}

start_echo() { serve echo "$bench" echo --socket "$work/echo.sock"; }

start_redis() {
    local common=(--port 0 --save "" --dir "$work" --daemonize no)
    serve redis redis-server "${common[@]}" --unixsocket "$work/redis.sock" --appendonly no
    serve redis_aof redis-server "${common[@]}" --unixsocket "$work/redis_aof.sock" \
        --appendonly yes --appendfsync always --auto-aof-rewrite-percentage 0
    fill_all resp redis
    fill_all resp redis_aof
    fill_items resp redis
    note "Redis" "$(redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/'), appendfsync always for creates"
}

# scan TARGET: how many records a filter without an index scans.
scan() {
    load "$1" scan --requests 1 >/dev/null
    load "$1" scan --requests 4 | sed -n 's/.*"requestsPerSecond":\([0-9.]*\).*/\1/p' |
        awk -v records="$records" -v target="$1" '{
            printf "{\"kind\":\"scan\",\"target\":\"%s\",\"recordsPerSecond\":%f}\n", target, $1 * records
        }' >>"$lines"
}

# What a record in the cache takes, of a daemon that has read nothing else.
measure_cached() {
    local before cached
    load crudd read --requests 1 >/dev/null
    before=$(resident crudd)
    read_hot crudd
    cached=$("$build/crudctl" --socket "$work/crudd.sock" -o json status |
        sed -n 's/.*"cache":{[^}]*"records":\([0-9]*\).*/\1/p')
    printf '{"kind":"cached","records":%d,"residentBytes":%d}\n' "$cached" "$(($(resident crudd) - before))" >>"$lines"
}
# Twice, so that the cache takes them for good.
read_hot() {
    load "$1" read --collection "$(collection_of "$1-read")" --ids rising --records "$hot" --requests $((2 * hot)) \
        --depth 64 >/dev/null
}

start_crudd() {
    # Room for the rows with many connections.
    configure crudd <<END
busy_poll: 200us
limits: {sessions: 4096, sessions_per_user: 4096}
backends:
  main: {plugin: sqlite, options: {path: $work/crudd/main.sqlite, synchronous: full}}
collections:
  indexed: {backend: main, indexes: [group]}
  changed: {backend: main, changes: true}
  "*": {backend: main}
END
    serve_crudd crudd
    fill_all crudd crudd
    fill_all crudd crudd --collection indexed
    fill_items crudd crudd
    kill -TERM "${servers[crudd]}"
    wait "${servers[crudd]}"
    unset 'servers[crudd]'
    "$bench" start --notify-socket "$work/notify.sock" "$build/crudd" --config "$work/crudd.yaml" \
        2>>"$work/crudd.log" >>"$lines"
    serve_crudd crudd
    measure_cached
    scan crudd
    note "crudd" "$("$build/crudd" --version), SQLite, synchronous: full"
}

# Collections of the same daemon: one that remembers its changes,
start_changes() {
    fill_all crudd crudd --collection changed
    say "200 followers"
    "$bench" follow --socket "$work/crudd.sock" --first 3000000000 >>"$lines"
}
# one with records that expire, but not in the time of the bench;
start_expiring() { fill crudd crudd --collection expiring --records "$hot" --requests "$hot" --ttl 86400; }
# and the daemon without spinning: busy_poll TIME is that from now on.
start_sleeping() { :; }
busy_poll() {
    sed -i "s/^busy_poll: .*/busy_poll: $1/" "$work/crudd.yaml"
    reload crudd
}

# One that stores property lists, with a cache of its own: two collections of hot records do not fit into one.
start_plist() {
    configure plist <<END
busy_poll: 200us
backends:
  main: {plugin: sqlite, options: {path: $work/plist/main.sqlite, synchronous: full}}
collections:
  "*": {backend: main, format: plist}
END
    serve_crudd plist
    fill crudd plist --records "$hot" --requests "$hot"
}

# The same as crudd with the plugin in a child process.
start_isolated() {
    configure isolated <<END
backends:
  main:
    plugin: sqlite
    isolation: process
    options: {path: $work/isolated/main.sqlite, synchronous: full}
collections:
  "*": {backend: main}
END
    serve_crudd isolated
    fill_all crudd isolated
    scan isolated
}

# Records in memory, with a log that makes them durable.
start_logged() {
    configure logged <<END
busy_poll: 200us
backends:
  main: {plugin: memory, options: {log: $work/logged/log}}
collections:
  "*": {backend: main}
END
    serve_crudd logged
    local empty begun
    until empty=$(resident logged) && [[ -S $work/logged.sock ]]; do sleep 0.01; done
    fill_all crudd logged
    note "durable memory" "$((($(resident logged) - empty) / records)) B resident for each record"
    kill -TERM "${servers[logged]}"
    wait "${servers[logged]}"
    begun=$(date +%s%N)
    serve_crudd logged
    until load logged read --requests 1 >/dev/null 2>&1; do sleep 0.01; done
    note "durable memory, start to the first read" "$((($(date +%s%N) - begun) / 1000000)) ms"
    scan logged
}

start_postgresql() {
    local data=$work/postgresql as=()
    mkdir "$data"
    if ((EUID == 0)); then
        chown postgres: "$data"
        as=(setpriv --reuid=postgres --regid=postgres --init-groups)
    fi
    (cd "$data" && "${as[@]}" "$postgresql/initdb" -D "$data/data" -U postgres --auth=trust --no-locale -E UTF8 \
        --no-sync >"$work/initdb.log")
    # Without background writes: no checkpoint and no vacuum happens during a run.
    serve postgresql "${as[@]}" "$postgresql/postgres" -D "$data/data" -k "$data" -c listen_addresses= \
        -c shared_buffers=512MB -c max_wal_size=16GB -c checkpoint_timeout=1h -c autovacuum=off
    until "$postgresql/pg_isready" -q -h "$data"; do
        kill -0 "${servers[postgresql]}" || { cat "$work/postgresql.log" >&2; exit 69; }
        sleep 0.1
    done
    say "filling postgresql"
    value=$("$bench" value --value-bytes "$value_bytes")
    "$postgresql/psql" -q -h "$data" -U postgres -v ON_ERROR_STOP=1 -v value="$value" -v records="$records" <<'END'
CREATE TABLE records (id text PRIMARY KEY, value jsonb NOT NULL);
CREATE SEQUENCE ids START 2000000000;
INSERT INTO records SELECT n::text, replace(:'value', '1000000000', n::text)::jsonb
    FROM generate_series(1000000000, 1000000000 + :records - 1) AS n;
CREATE TABLE indexed (id text PRIMARY KEY, value jsonb NOT NULL);
INSERT INTO indexed SELECT id, jsonb_set(value, '{group}', to_jsonb(id::bigint / 10)) FROM records;
CREATE INDEX ON indexed (((value->>'group')::bigint));
VACUUM ANALYZE records;
VACUUM ANALYZE indexed;
CHECKPOINT;
END
    cat >"$work/read.sql" <<'END'
\set id random(1000000000, 1000000000 + :records - 1)
SELECT id, value FROM records WHERE id = :id;
END
    cat >"$work/query.sql" <<'END'
\set group random(100000000, 100000000 + (:records - 1) / 10)
SELECT id, value FROM indexed WHERE (value->>'group')::bigint = :group LIMIT 10;
END
    cat >"$work/create-rising.sql" <<'END'
INSERT INTO records VALUES (nextval('ids')::text, :value);
END
    cat >"$work/create-random.sql" <<'END'
\set id random(1000000000000000000, 1000000000000000000 + :records * 1000000000 - 1)
INSERT INTO records VALUES (:id, :value);
END
    note "PostgreSQL" "$("$postgresql/postgres" --version | sed 's/[^0-9]*\([0-9.]*\).*/\1/'), pgbench -M prepared"
}

# crudd on the same server, in a schema of its own.
start_adapter() {
    configure adapter <<END
backends:
  main: {plugin: postgresql, options: {connection: "host=$work/postgresql user=postgres dbname=postgres"}}
collections:
  indexed: {backend: main, indexes: [group]}
  "*": {backend: main}
END
    serve_crudd adapter
    fill_all crudd adapter
    fill_all crudd adapter --collection indexed
    "$postgresql/psql" -q -h "$work/postgresql" -U postgres -c "VACUUM ANALYZE" -c CHECKPOINT
}
# pgbench OPERATION IDS CONNECTIONS SECONDS [OPTION...]
pgbench() {
    local script=$work/$1-$2.sql
    if [[ $1 != create ]]; then script=$work/$1.sql; fi
    taskset -c "$client_cpus" "$postgresql/pgbench" -n -M prepared -h "$work/postgresql" -U postgres -f "$script" \
        -c "$3" -j 1 -T "$4" -D records="$records" -D value="$value" "${@:5}" postgres 2>>"$work/pgbench.log"
}
# measure_postgresql OPERATION IDS CONNECTIONS PLACEMENT ROUND
measure_postgresql() {
    local summary
    pgbench "$1" "$2" "$3" 1 >/dev/null
    summary=$(pgbench "$1" "$2" "$3" "$seconds" -l --sampling-rate=0.1 --log-prefix="$work/transactions")
    # The third column of the log is the latency in µs.
    cut -d ' ' -f 3 "$work"/transactions.* | sort -n | awk -v summary="$summary" -v operation="$1" -v ids="$2" \
        -v connections="$3" -v placement="$4" -v round="$5" -v seconds="$seconds" -v value_bytes="$value_bytes" '
        { latency[NR] = $1 }
        function quantile(fraction, rank) {
            rank = int(NR * fraction + 0.9999)
            return NR ? latency[rank < 1 ? 1 : rank] : 0
        }
        END {
            match(summary, /tps = [0-9.]+/)
            pace = substr(summary, RSTART + 6, RLENGTH - 6)
            match(summary, /actually processed: [0-9]+/)
            requests = substr(summary, RSTART + 20, RLENGTH - 20)
            printf "{\"kind\":\"measurement\",\"target\":\"postgresql\","
            printf "\"operation\":\"%s\",\"ids\":\"%s\",", operation, ids
            printf "\"connections\":%d,\"depth\":1,\"valueBytes\":%d,", connections, value_bytes
            printf "\"placement\":\"%s\",\"round\":%d,", placement, round
            printf "\"requests\":%d,\"seconds\":%s,\"requestsPerSecond\":%s,", requests, seconds, pace
            printf "\"p50Microseconds\":%d,\"p99Microseconds\":%d,\"p999Microseconds\":%d}\n",
                quantile(0.5), quantile(0.99), quantile(0.999)
            printf "postgresql %s %s c%d d1: %.1f k/s, p50 %d, p99 %d, p99.9 %d µs\n", operation, ids, connections,
                pace / 1000, quantile(0.5), quantile(0.99), quantile(0.999) >"/dev/stderr"
        }' >>"$lines"
    rm "$work"/transactions.*
}
