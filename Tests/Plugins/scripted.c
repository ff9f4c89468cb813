// A storage plugin for tests of the host. It keeps records in memory, counts the calls, checks that the host keeps the
// rules of the contract, and misbehaves where its options or the names in a request ask for it:
//
//     {"open_failures": n, "open_status": s}   the first n calls of open return s
//     {"open_hangs": 1}                        open never returns
//     {"reader_failures": n}                   the first n calls of open_reader return CRUDD_UNAVAILABLE
//     {"lacks": c}                             the backend does not have these of the plugin's capabilities
//     {"last_sequence": n}                     what open reports as the highest sequence number
//     {"preferred_readers": n}                 how many readers open asks for
//     {"open_down": 1}                         open reports that the storage is down
//     {"gated": 1}                             each write waits until the test lets it pass
//     {"busy": 1}                              a write never returns
//     {"meddles": n}                           before each of the first n writes that depend on a revision the records
//                                              that it is about are rewritten, as if by another program
//     {"emits_expired": 1}                     records that have expired are emitted and counted
//     {"emits_unordered": 1}                   scans emit records in the opposite order
//     {"ignores_range": 1}                     scans by id, key and sequence emit records beyond their bounds
//     {"short_records": 1}                     emitted records end behind `revision`
//     {"long_records": 1}                      emitted records have fields that the host does not know
//     {"recovers_after": n}                    n calls of idle after the storage was lost, it is back
//
//     collection "open:s", "create:s"          open_collection returns s, at once or when it is to create
//     collection "trim:s"                      the second and the third call of trim_history return s
//     collection "progress:ms", "slow:ms"      open_collection takes so long, with or without reports of progress
//     id "status:s…"                           the outcome of that mutation is s
//     id "call:s…"                             the whole read or write returns s; a write that returns
//                                              CRUDD_OUTCOME_UNKNOWN has taken effect
//     id "wait:PATH"                           a read of it waits until the FIFO there has been opened for writing
//                                              and closed again
//     id "progress:ms", "slow:ms"              a write of it takes so long, with or without reports of progress
//     id "down:…", "up:…"                      a write of it reports that the storage was lost, or is back
//     id "emitted:…"                           a read of it finds how many items other reads have emitted
//
// Compiled with -DCAPABILITIES=…, and with -DSHORT_TABLE for a table that ends at `write` or -DLONG_TABLE for one with
// functions that the host does not know. Each test loads a copy of the shared object, which has counters of its own.

#include <crudd_plugin.h>
#include <pthread.h>

#include "scripted-records.h"
#include "scripted-control.h"

struct crudd_backend {
    const crudd_host *host;
    crudd_collection *collections;
    record *records;
    int is_gated, is_busy, reader_failures, meddles, is_lenient, is_unordered, ignores_range, idles_until_up;
    size_t record_size;
    atomic_int readers;
    atomic_int calls;
    pthread_mutex_t lock;
};

/// A reader shows what was there at its first call after end_snapshot.
struct crudd_reader {
    crudd_backend *backend;
    record *snapshot;
    int has_snapshot;
    atomic_int calls;
};

static atomic_int *reading(crudd_reader *reader) {
    return can(CRUDD_CAN_READ_CONCURRENTLY) ? &reader->calls : &reader->backend->calls;
}

// MARK: Backends

static crudd_status check_options(crudd_bytes options, crudd_failure *failure) {
    return option(options, "refused") ? fail(CRUDD_INVALID_OPTIONS, failure) : CRUDD_OK;
}

static crudd_status open_backend(crudd_bytes options, const crudd_host *host, const crudd_call *call,
                                 crudd_backend **opened, crudd_opened *result, crudd_failure *failure) {
    require(host->struct_size >= sizeof *host && result->struct_size >= sizeof *result && call->now != 0);
    require(result->capabilities == CAPABILITIES && result->readers == 0 && result->last_sequence == 0);
    while (option(options, "open_hangs")) pause();
    if (counters[OPENS]++ < option(options, "open_failures")) return fail(option(options, "open_status"), failure);
    crudd_backend *backend = calloc(1, sizeof *backend);
    last_host = backend->host = host;
    backend->is_gated = option(options, "gated");
    backend->is_busy = option(options, "busy");
    backend->meddles = option(options, "meddles");
    backend->is_lenient = option(options, "emits_expired");
    backend->is_unordered = option(options, "emits_unordered");
    backend->ignores_range = option(options, "ignores_range");
    backend->idles_until_up = option(options, "recovers_after");
    backend->record_size = option(options, "short_records")  ? offsetof(crudd_record, expires_at)
                           : option(options, "long_records") ? sizeof(crudd_record) + 64
                                                             : sizeof(crudd_record);
    backend->reader_failures = option(options, "reader_failures");
    result->capabilities &= ~(uint64_t)option(options, "lacks");
    result->last_sequence = option(options, "last_sequence");
    result->readers = option(options, "preferred_readers");
    if (option(options, "open_down")) host->state(host->context, CRUDD_DOWN, literal("scripted is down"));
    pthread_mutex_init(&backend->lock, NULL);
    log_line(backend->host, "scripted is open");
    *opened = backend;
    return CRUDD_OK;
}

static void close_backend(crudd_backend *backend) {
    require(backend->readers == 0 && backend->calls == 0);
    empty(&backend->records);
    while (backend->collections) {
        crudd_collection *next = backend->collections->next;
        for (int slot = 0; slot < MAXIMUM_INDEXES; slot++) free(backend->collections->slots[slot].data);
        free(backend->collections->name.data);
        free(backend->collections);
        backend->collections = next;
    }
    free(backend);
    counters[CLOSES]++;
}

static void idle(crudd_backend *backend, const crudd_call *call) {
    enter(&backend->calls);
    counters[IDLES]++;
    if (backend->idles_until_up > 0 && --backend->idles_until_up == 0) {
        backend->host->state(backend->host->context, CRUDD_UP, literal("scripted is back"));
    }
    sem_post(&events[IDLED]);
    leave(&backend->calls);
}

// MARK: Collections

static crudd_status open_collection(crudd_backend *backend, const crudd_call *call, const crudd_collection_spec *spec,
                                    crudd_collection **opened, crudd_failure *failure) {
    require(spec->struct_size >= sizeof *spec && spec->index_count < MAXIMUM_INDEXES);
    require(spec->index_count == 0 || can(CRUDD_HAS_INDEXES));
    require(!(spec->flags & CRUDD_OPEN_SEQUENCES) || can(CRUDD_HAS_SEQUENCES));
    linger(backend->host, spec->name);
    counters[COLLECTIONS_OPENED]++;
    if (asked(spec->name, "open:")) return fail(asked(spec->name, "open:"), failure);
    crudd_collection *collection = backend->collections;
    while (collection && !same(collection->name, spec->name)) collection = collection->next;
    if (!collection) {
        if (!(spec->flags & CRUDD_OPEN_CREATE)) return fail(CRUDD_NOT_FOUND, failure);
        if (asked(spec->name, "create:")) return fail(asked(spec->name, "create:"), failure);
        collection = calloc(1, sizeof *collection);
        collection->next = backend->collections;
        collection->name = copied(spec->name);
        backend->collections = collection;
        counters[CREATIONS]++;
    }
    pthread_mutex_lock(&backend->lock);
    if (!(spec->flags & CRUDD_OPEN_AS_IT_IS)) set_indexes(collection, spec, backend->records);
    pthread_mutex_unlock(&backend->lock);
    *opened = collection;
    return CRUDD_OK;
}

static crudd_status drop_collection(crudd_backend *backend, const crudd_call *call, crudd_bytes name,
                                    crudd_failure *failure) {
    return fail(CRUDD_UNSUPPORTED, failure);
}

static crudd_status list_collections(crudd_backend *backend, const crudd_call *call, crudd_emit_name emit,
                                     void *context, crudd_failure *failure) {
    for (crudd_collection *known = backend->collections; known; known = known->next) emit(context, bytes(known->name));
    return CRUDD_OK;
}

// MARK: Reading

static crudd_status open_reader(crudd_backend *backend, crudd_reader **opened, crudd_failure *failure) {
    if (counters[READERS]++ < backend->reader_failures) return fail(CRUDD_UNAVAILABLE, failure);
    crudd_reader *reader = calloc(1, sizeof *reader);
    reader->backend = backend;
    backend->readers++;
    *opened = reader;
    return CRUDD_OK;
}

static void close_reader(crudd_reader *reader) {
    reader->backend->readers--;
    empty(&reader->snapshot);
    free(reader);
}

static void end_snapshot(crudd_reader *reader) {
    enter(reading(reader));
    empty(&reader->snapshot);
    reader->has_snapshot = 0;
    counters[SNAPSHOTS_ENDED]++;
    leave(reading(reader));
}

static uint64_t data_version(crudd_reader *reader) { return version; }

static void take_snapshot(crudd_reader *reader) {
    // Without end_snapshot the host expects to see every write.
    if (reader->has_snapshot && TABLE_SIZE > offsetof(crudd_plugin, end_snapshot)) return;
    empty(&reader->snapshot);
    pthread_mutex_lock(&reader->backend->lock);
    reader->snapshot = duplicate(reader->backend->records);
    pthread_mutex_unlock(&reader->backend->lock);
    reader->has_snapshot = 1;
}

static int32_t emit_count(const crudd_read *request, size_t index) {
    char item[24];
    snprintf(item, sizeof item, "%ld", (long)counters[ITEMS_READ]);
    crudd_record record = {.struct_size = sizeof record, .id = request->ids[index], .item = literal(item),
                           .revision = literal("r")};
    return request->emit(request->context, index, &record);
}

static crudd_status read_records(crudd_reader *reader, const crudd_call *call, const crudd_read *request,
                                 crudd_failure *failure) {
    enter(reading(reader));
    counters[READS]++;
    counters[READS_TO_WRITE] += (request->flags & CRUDD_READ_TO_WRITE) != 0;
    require(request->struct_size >= sizeof *request && call->now != 0);
    take_snapshot(reader);
    crudd_status status = CRUDD_OK;
    for (size_t index = 0; index < request->count && status == CRUDD_OK; index++) {
        if (asked(request->ids[index], "call:")) status = fail(asked(request->ids[index], "call:"), failure);
        if (begins(request->ids[index], "emitted")) {
            if (emit_count(request, index)) break;
            continue;
        }
        wait_at(request->ids[index]);
        const record *found = *place(&reader->snapshot, request->collection, request->ids[index]);
        if (!found || status != CRUDD_OK || (has_expired(found, call) && !reader->backend->is_lenient)) continue;
        int without_item = request->flags & CRUDD_READ_WITHOUT_ITEMS;
        counters[ITEMS_READ] += !without_item;
        if (emit_record(found, reader->backend->record_size, without_item, request->emit, request->context, index))
            break;
    }
    leave(reading(reader));
    return status;
}

/// The records of a range in its order; the caller frees them.
static position *positions(crudd_reader *reader, const crudd_call *call, const crudd_collection *collection,
                           const crudd_range *range, size_t *count) {
    require(range->struct_size >= sizeof *range && call->now != 0);
    require(range->order != CRUDD_BY_KEY || range->index < collection->index_count);
    take_snapshot(reader);
    size_t total = 1;
    for (const record *record = reader->snapshot; record; record = record->next) total++;
    position *found = malloc(total * sizeof *found);
    *count = 0;
    for (const record *record = reader->snapshot; record; record = record->next) {
        if (record->collection != collection || (has_expired(record, call) && !reader->backend->is_lenient)) continue;
        position position = position_of(record, range);
        if (is_in_range(&position, range) || reader->backend->ignores_range) found[(*count)++] = position;
    }
    qsort(found, *count, sizeof *found, compare_positions);
    return found;
}

static crudd_status scan_records(crudd_reader *reader, const crudd_call *call, const crudd_scan *request,
                                 crudd_failure *failure) {
    enter(reading(reader));
    counters[SCANS]++;
    require(request->struct_size >= sizeof *request);
    size_t count, emitted = 0;
    position *found = positions(reader, call, request->collection, request->range, &count);
    position after = {.key = request->after_key, .id = request->after_id};
    int is_reverse = (request->flags & CRUDD_SCAN_REVERSE) != 0;
    crudd_status status = CRUDD_OK;
    for (size_t n = 0; n < count && (!request->limit || emitted < request->limit); n++) {
        const position *next = &found[is_reverse != reader->backend->is_unordered ? count - 1 - n : n];
        if (call->interrupted && call->interrupted(call->context)) {
            counters[INTERRUPTS]++;
            status = fail(CRUDD_INTERRUPTED, failure);
            break;
        }
        int order = after.id.size ? compare_positions(next, &after) : 1;
        if (after.id.size && (is_reverse ? order >= 0 : order <= 0)) continue;
        if (emit_record(next->record, reader->backend->record_size, request->flags & CRUDD_SCAN_WITHOUT_ITEMS,
                        request->emit, request->context, emitted++))
            break;
    }
    free(found);
    leave(reading(reader));
    return status;
}

static crudd_status count_records(crudd_reader *reader, const crudd_call *call, const crudd_count *request,
                                  uint64_t *result, crudd_failure *failure) {
    enter(reading(reader));
    counters[COUNTS]++;
    require(request->struct_size >= sizeof *request);
    size_t count;
    free(positions(reader, call, request->collection, request->range, &count));
    *result = count;
    leave(reading(reader));
    return CRUDD_OK;
}

// MARK: Writing

/// Applies a mutation, unless its id asks for another outcome.
static void apply_scripted(crudd_backend *backend, const crudd_call *call, const crudd_mutation *mutation,
                           crudd_outcome *outcome) {
    require(outcome->struct_size >= sizeof *outcome && outcome->status == 0 && outcome->revision_size == 0);
    outcome->status = asked(mutation->record->id, "status:");
    if (outcome->status == CRUDD_OK) apply(&backend->records, call, mutation, outcome);
    counters[KEYS_SET] += mutation->kind == CRUDD_SET_KEYS && outcome->status == CRUDD_OK;
}

/// Rewrites the records of mutations, as if another program had.
static void meddle(crudd_backend *backend, const crudd_write *request) {
    int depends = 0;
    for (size_t index = 0; index < request->count; index++) {
        depends |= mutation_at(request, index)->precondition == CRUDD_IF_REVISION;
    }
    if (backend->meddles == 0 || !depends) return;
    char revision[16];
    snprintf(revision, sizeof revision, "theirs %d", --backend->meddles);
    for (size_t index = 0; index < request->count; index++) {
        const crudd_mutation *mutation = mutation_at(request, index);
        record *found = *place(&backend->records, mutation->collection, mutation->record->id);
        if (!found) continue;
        free(found->revision.data);
        found->revision = copied(literal(revision));
    }
}

/// Applies mutations up to the first that fails, and undoes them if one does.
static void apply_atomically(crudd_backend *backend, const crudd_call *call, const crudd_write *request) {
    record *before = duplicate(backend->records);
    for (size_t index = 0; index < request->count; index++) {
        apply_scripted(backend, call, mutation_at(request, index), outcome_at(request, index));
        if (outcome_at(request, index)->status == CRUDD_OK) continue;
        record *after = backend->records;
        backend->records = before;
        before = after;
        break;
    }
    empty(&before);
}

/// Checks one mutation, and does what its id asks for before the batch is applied; returns the status of the batch.
static crudd_status prepare_mutation(crudd_backend *backend, const crudd_write *request,
                                     const crudd_mutation *mutation) {
    require(mutation->struct_size >= sizeof *mutation && mutation->record->struct_size >= sizeof *mutation->record);
    require(mutation->record->keys == NULL || mutation->record->key_count == mutation->collection->index_count);
    require(mutation->kind != CRUDD_CHECK || request->flags & CRUDD_WRITE_ATOMIC);
    require(mutation->kind != CRUDD_SET_KEYS || mutation->precondition == CRUDD_IF_REVISION);
    crudd_bytes id = mutation->record->id;
    linger(backend->host, id);
    if (begins(id, "down:")) backend->host->state(backend->host->context, CRUDD_DOWN, id);
    if (begins(id, "up:")) backend->host->state(backend->host->context, CRUDD_UP, id);
    return asked(id, "call:");
}

static crudd_status write_records(crudd_backend *backend, const crudd_call *call, const crudd_write *request,
                                  crudd_failure *failure) {
    enter(&backend->calls);
    counters[WRITES]++;
    counters[MUTATIONS] += request->count;
    require(request->struct_size >= sizeof *request && call->now != 0);
    sem_post(&events[WRITE_BEGAN]);
    if (backend->is_gated) {
        log_line(backend->host, "scripted waits");
        sem_wait(&gate);
    }
    if (backend->is_busy) log_line(backend->host, "scripted is busy");
    while (backend->is_busy) sched_yield();
    crudd_status status = CRUDD_OK;
    for (size_t index = 0; index < request->count; index++) {
        if (status == CRUDD_OK) status = prepare_mutation(backend, request, mutation_at(request, index));
    }
    if (status == CRUDD_OK || status == CRUDD_OUTCOME_UNKNOWN) {
        pthread_mutex_lock(&backend->lock);
        meddle(backend, request);
        if (request->flags & CRUDD_WRITE_ATOMIC) apply_atomically(backend, call, request);
        for (size_t index = 0; index < request->count && !(request->flags & CRUDD_WRITE_ATOMIC); index++) {
            apply_scripted(backend, call, mutation_at(request, index), outcome_at(request, index));
        }
        pthread_mutex_unlock(&backend->lock);
    }
    if (status != CRUDD_OK) fail(status, failure);
    leave(&backend->calls);
    return status;
}

/// Nothing is ever removed by its age.
static crudd_status trim_history(crudd_backend *backend, const crudd_call *call, const crudd_trim *request,
                                 crudd_history *history, crudd_failure *failure) {
    enter(&backend->calls);
    require(request->struct_size >= sizeof *request && history->struct_size >= sizeof *history && call->now != 0);
    history->identity = 1;
    leave(&backend->calls);
    long call_number = ++counters[TRIMS];
    int status = asked(bytes(request->collection->name), "trim:");
    return status && (call_number == 2 || call_number == 3) ? fail(status, failure) : CRUDD_OK;
}

// MARK: The table

/// In the place of a function that the host does not know.
static void unknown(void) { abort(); }

static const struct table table = {
    .plugin = {
        .struct_size = TABLE_SIZE,
        .abi_version = CRUDD_ABI_VERSION,
        .name = "scripted",
        .version = "1.2.3",
        .capabilities = CAPABILITIES,
        .check_options = check_options,
        .open = open_backend,
        .close = close_backend,
        .open_collection = open_collection,
        .drop_collection = drop_collection,
        .list_collections = list_collections,
        .open_reader = open_reader,
        .close_reader = close_reader,
        .read = read_records,
        .scan = scan_records,
        .count = count_records,
        .write = write_records,
        .end_snapshot = end_snapshot,
        .data_version = data_version,
        .idle = idle,
        .trim_history = trim_history,
    },
    .unknown = {unknown, unknown, unknown, unknown},
};

const crudd_plugin *crudd_plugin_entry(void) { return &table.plugin; }
