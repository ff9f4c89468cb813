// A storage plugin for tests of the host. It keeps records in memory, counts what it is asked, minds the contract on
// threads and readers, and misbehaves where its options or the names in a request say so:
//
//     {"open_failures": n, "open_status": s}   the first n calls of open answer s
//     {"open_hangs": 1}                        open never returns
//     {"reader_failures": n}                   the first n calls of open_reader answer CRUDD_UNAVAILABLE
//     {"lacks": c}                             backend_capabilities leaves these out
//     {"gated": 1}                             each write waits until the test lets it pass
//     {"busy": 1}                              a write computes for ever
//     {"meddles": n}                           before the first n atomic writes somebody else has rewritten the records
//                                              that they are about
//
//     collection "open:s", "create:s"          open_collection answers s, at once or when it is to create
//     id "status:s…"                           that mutation's outcome is s
//     id "call:s…"                             the whole read or write answers s; a write that answers
//                                              CRUDD_OUTCOME_UNKNOWN has taken effect
//     id "wait:PATH"                           a read of it waits until the FIFO there has been opened to write and
//                                              closed again
//
// Compiled with -DCAPABILITIES=…; a copy of the shared object of its own gives each test counters of its own.

#include <crudd_plugin.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef CAPABILITIES
#define CAPABILITIES 0
#endif

// MARK: What a test sees

enum { OPENS, CLOSES, READERS, CREATIONS, READS, WRITES, MUTATIONS, SNAPSHOTS_ENDED, IDLES, QUERIES, BREACHES, COUNTERS };
enum { WRITE_BEGAN, IDLED, EVENTS };

static atomic_long counters[COUNTERS];
static sem_t events[EVENTS];
static sem_t gate;

__attribute__((constructor)) static void prepare(void) {
    for (int event = 0; event < EVENTS; event++) sem_init(&events[event], 0, 0);
    sem_init(&gate, 0, 0);
}

long scripted_counter(int counter) { return counters[counter]; }

/// Waits until an event has happened once more than it was waited for; 0 if it does not in time.
int scripted_await(int event, int seconds) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += seconds;
    return sem_timedwait(&events[event], &deadline) == 0;
}

/// Lets so many writes pass the gate.
void scripted_pass(int writes) {
    for (int write = 0; write < writes; write++) sem_post(&gate);
}

// MARK: Data

typedef struct text {
    size_t size;
    uint8_t *data;
} text;

static text copied(crudd_bytes bytes) {
    text copy = {bytes.size, malloc(bytes.size + 1)};
    if (bytes.size) memcpy(copy.data, bytes.data, bytes.size);
    copy.data[bytes.size] = 0;
    return copy;
}

static crudd_bytes bytes(text text) { return (crudd_bytes){text.data, text.size}; }

static int same(text text, crudd_bytes bytes) {
    return text.size == bytes.size && (bytes.size == 0 || memcmp(text.data, bytes.data, bytes.size) == 0);
}

typedef struct record {
    struct record *next;
    const crudd_collection *collection;
    text id, item, revision;
} record;

struct crudd_collection {
    crudd_collection *next;
    text name;
};

struct crudd_backend {
    const crudd_host *host;
    crudd_collection *collections;
    record *records;
    int is_gated, is_busy, reader_failures, meddles;
    atomic_int readers;
    uint64_t lacks;
    atomic_int calls;
    pthread_mutex_t lock;
};

/// A reader shows what was there at its first call after end_snapshot.
struct crudd_reader {
    crudd_backend *backend;
    record *view;
    int has_view;
    atomic_int calls;
};

static record **place(record **records, const crudd_collection *collection, crudd_bytes id) {
    while (*records && !((*records)->collection == collection && same((*records)->id, id))) records = &(*records)->next;
    return records;
}

static void drop(record *record) {
    free(record->id.data);
    free(record->item.data);
    free(record->revision.data);
    free(record);
}

static void empty(record **records) {
    while (*records) {
        record *next = (*records)->next;
        drop(*records);
        *records = next;
    }
}

static record *duplicate(const record *records) {
    record *copy = NULL;
    for (; records; records = records->next) {
        record *one = malloc(sizeof *one);
        *one = (record){copy, records->collection, copied(bytes(records->id)), copied(bytes(records->item)),
                        copied(bytes(records->revision))};
        copy = one;
    }
    return copy;
}

// MARK: The contract

/// Begins a call on something that allows one at a time.
static void enter(atomic_int *calls) {
    if (atomic_fetch_add(calls, 1) != 0) counters[BREACHES]++;
    sched_yield();
}

static void leave(atomic_int *calls) { atomic_fetch_sub(calls, 1); }

static atomic_int *reading(crudd_reader *reader) {
    return CAPABILITIES & CRUDD_CAN_READ_CONCURRENTLY ? &reader->calls : &reader->backend->calls;
}

static void say(const crudd_backend *backend, const char *line) {
    backend->host->log(backend->host->context, CRUDD_LOG_WARNING, (crudd_bytes){(const uint8_t *)line, strlen(line)});
}

static long option(crudd_bytes options, const char *name) {
    text text = copied(options);
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    char *found = strstr((char *)text.data, key);
    long value = found ? strtol(found + strlen(key), NULL, 10) : 0;
    free(text.data);
    return value;
}

/// The number after a prefix, which a name asks for; 0 for every other name.
static crudd_status asked(crudd_bytes name, const char *prefix) {
    size_t size = strlen(prefix);
    if (name.size <= size || memcmp(name.data, prefix, size) != 0) return CRUDD_OK;
    char digits[8] = {0};
    memcpy(digits, name.data + size, name.size - size < 7 ? name.size - size : 7);
    return atoi(digits);
}

/// Waits where an id asks for it.
static void wait_at(crudd_bytes id) {
    static const char prefix[] = "wait:";
    size_t size = strlen(prefix);
    if (id.size <= size || memcmp(id.data, prefix, size) != 0) return;
    text path = copied(id);
    int fifo = open((char *)path.data + size, O_RDONLY | O_CLOEXEC);
    char byte;
    while (read(fifo, &byte, 1) > 0) {}
    close(fifo);
    free(path.data);
}

static crudd_status fail(crudd_status status, crudd_failure *failure) {
    if (failure->struct_size != sizeof *failure || failure->message[0] || failure->pointer[0]) counters[BREACHES]++;
    snprintf(failure->message, sizeof failure->message, "private reason %d", status);
    if (status == CRUDD_INVALID_OPTIONS) snprintf(failure->pointer, sizeof failure->pointer, "/open_status");
    return status;
}

// MARK: The table

static crudd_status check_options(crudd_bytes options, crudd_failure *failure) {
    return option(options, "refused") ? fail(CRUDD_INVALID_OPTIONS, failure) : CRUDD_OK;
}

static crudd_status open_backend(crudd_bytes options, const crudd_host *host, crudd_backend **opened,
                                 crudd_failure *failure) {
    while (option(options, "open_hangs")) pause();
    if (counters[OPENS]++ < option(options, "open_failures")) return fail(option(options, "open_status"), failure);
    crudd_backend *backend = calloc(1, sizeof *backend);
    backend->host = host;
    backend->is_gated = option(options, "gated");
    backend->is_busy = option(options, "busy");
    backend->lacks = option(options, "lacks");
    backend->meddles = option(options, "meddles");
    pthread_mutex_init(&backend->lock, NULL);
    backend->reader_failures = option(options, "reader_failures");
    say(backend, "scripted is open");
    *opened = backend;
    return CRUDD_OK;
}

static void close_backend(crudd_backend *backend) {
    if (backend->readers != 0 || backend->calls != 0) counters[BREACHES]++;
    empty(&backend->records);
    while (backend->collections) {
        crudd_collection *next = backend->collections->next;
        free(backend->collections->name.data);
        free(backend->collections);
        backend->collections = next;
    }
    free(backend);
    counters[CLOSES]++;
}

static crudd_status open_collection(crudd_backend *backend, const crudd_collection_spec *spec,
                                    crudd_collection **opened, crudd_failure *failure) {
    if (asked(spec->name, "open:")) return fail(asked(spec->name, "open:"), failure);
    for (crudd_collection *known = backend->collections; known; known = known->next) {
        if (same(known->name, spec->name)) return *opened = known, CRUDD_OK;
    }
    if (!(spec->flags & CRUDD_OPEN_CREATE)) return fail(CRUDD_NOT_FOUND, failure);
    if (asked(spec->name, "create:")) return fail(asked(spec->name, "create:"), failure);
    crudd_collection *collection = malloc(sizeof *collection);
    *collection = (crudd_collection){backend->collections, copied(spec->name)};
    *opened = backend->collections = collection;
    counters[CREATIONS]++;
    return CRUDD_OK;
}

static crudd_status drop_collection(crudd_backend *backend, crudd_bytes name, crudd_failure *failure) {
    return fail(CRUDD_UNSUPPORTED, failure);
}

static crudd_status list_collections(crudd_backend *backend, crudd_emit_name emit, void *context,
                                     crudd_failure *failure) {
    for (crudd_collection *known = backend->collections; known; known = known->next) emit(context, bytes(known->name));
    return CRUDD_OK;
}

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
    empty(&reader->view);
    free(reader);
}

static void end_snapshot(crudd_reader *reader) {
    enter(reading(reader));
    empty(&reader->view);
    reader->has_view = 0;
    counters[SNAPSHOTS_ENDED]++;
    leave(reading(reader));
}

static void look(crudd_reader *reader) {
    if (reader->has_view) return;
    pthread_mutex_lock(&reader->backend->lock);
    reader->view = duplicate(reader->backend->records);
    pthread_mutex_unlock(&reader->backend->lock);
    reader->has_view = 1;
}

static crudd_status read_records(crudd_reader *reader, const crudd_read *request, crudd_failure *failure) {
    enter(reading(reader));
    counters[READS]++;
    look(reader);
    crudd_status status = CRUDD_OK;
    for (size_t index = 0; index < request->count && status == CRUDD_OK; index++) {
        if (asked(request->ids[index], "call:")) status = fail(asked(request->ids[index], "call:"), failure);
        wait_at(request->ids[index]);
        record *found = *place(&reader->view, request->collection, request->ids[index]);
        if (!found || status != CRUDD_OK) continue;
        crudd_bytes item = request->flags & CRUDD_READ_WITHOUT_ITEMS ? (crudd_bytes){NULL, 0} : bytes(found->item);
        if (request->emit(request->context, index, request->ids[index], item, bytes(found->revision))) break;
    }
    leave(reading(reader));
    return status;
}

static crudd_status scan_records(crudd_reader *reader, const crudd_scan *request, crudd_failure *failure) {
    return fail(CRUDD_UNSUPPORTED, failure);
}

static crudd_status count_records(crudd_reader *reader, const crudd_count *request, uint64_t *count,
                                  crudd_failure *failure) {
    enter(reading(reader));
    counters[QUERIES] += request->filter.size > 0;
    look(reader);
    *count = 0;
    for (record *record = reader->view; record; record = record->next) *count += record->collection == request->collection;
    leave(reading(reader));
    return CRUDD_OK;
}

static crudd_status query_records(crudd_reader *reader, const crudd_query *request, crudd_failure *failure) {
    counters[QUERIES]++;
    return CRUDD_OK;
}

static void apply(crudd_backend *backend, const crudd_mutation *mutation, crudd_outcome *outcome) {
    outcome->status = asked(mutation->id, "status:");
    if (outcome->status != CRUDD_OK) return;
    record **found = place(&backend->records, mutation->collection, mutation->id);
    int is_there = *found != NULL;
    if (mutation->precondition == CRUDD_IF_ABSENT && is_there) outcome->status = CRUDD_EXISTS;
    if (mutation->precondition == CRUDD_IF_PRESENT && !is_there) outcome->status = CRUDD_NOT_FOUND;
    if (mutation->kind == CRUDD_REMOVE && !is_there) outcome->status = CRUDD_NOT_FOUND;
    if (mutation->precondition == CRUDD_IF_REVISION) {
        if (!is_there) {
            outcome->status = CRUDD_NOT_FOUND;
        } else if (!same((*found)->revision, mutation->expected)) {
            outcome->status = CRUDD_MISMATCH;
            outcome->revision_size = (*found)->revision.size;
            memcpy(outcome->revision, (*found)->revision.data, (*found)->revision.size);
        }
    }
    if (outcome->status != CRUDD_OK || mutation->kind == CRUDD_CHECK) return;
    outcome->replaced = is_there && mutation->kind == CRUDD_PUT;
    if (is_there) {
        record *old = *found;
        *found = old->next;
        drop(old);
    }
    if (mutation->kind == CRUDD_REMOVE) return;
    record *new = malloc(sizeof *new);
    *new = (record){backend->records, mutation->collection, copied(mutation->id), copied(mutation->item),
                    copied(mutation->revision)};
    backend->records = new;
}

/// Somebody else rewrites the records of mutations.
static void meddle(crudd_backend *backend, const crudd_write *request) {
    if (backend->meddles == 0) return;
    char revision[16];
    size_t size = snprintf(revision, sizeof revision, "theirs %d", --backend->meddles);
    for (size_t index = 0; index < request->count; index++) {
        const crudd_mutation *mutation = &request->mutations[index];
        record *found = *place(&backend->records, mutation->collection, mutation->id);
        if (!found) continue;
        free(found->revision.data);
        found->revision = copied((crudd_bytes){(const uint8_t *)revision, size});
    }
}

/// Applies mutations up to the first that fails, and undoes them if one does.
static void apply_all(crudd_backend *backend, const crudd_write *request) {
    meddle(backend, request);
    record *before = duplicate(backend->records);
    for (size_t index = 0; index < request->count; index++) {
        apply(backend, &request->mutations[index], &request->outcomes[index]);
        if (request->outcomes[index].status == CRUDD_OK) continue;
        record *after = backend->records;
        backend->records = before;
        before = after;
        break;
    }
    empty(&before);
}

static crudd_status write_records(crudd_backend *backend, const crudd_write *request, crudd_failure *failure) {
    enter(&backend->calls);
    counters[WRITES]++;
    counters[MUTATIONS] += request->count;
    sem_post(&events[WRITE_BEGAN]);
    if (backend->is_gated) {
        say(backend, "scripted waits");
        sem_wait(&gate);
    }
    if (backend->is_busy) say(backend, "scripted is busy");
    while (backend->is_busy) sched_yield();
    crudd_status status = CRUDD_OK;
    for (size_t index = 0; index < request->count; index++) {
        if (status == CRUDD_OK) status = asked(request->mutations[index].id, "call:");
    }
    if (status == CRUDD_OK || status == CRUDD_OUTCOME_UNKNOWN) {
        pthread_mutex_lock(&backend->lock);
        if (request->flags & CRUDD_WRITE_ATOMIC) apply_all(backend, request);
        for (size_t index = 0; index < request->count && !(request->flags & CRUDD_WRITE_ATOMIC); index++) {
            apply(backend, &request->mutations[index], &request->outcomes[index]);
        }
        pthread_mutex_unlock(&backend->lock);
    }
    if (status != CRUDD_OK) fail(status, failure);
    leave(&backend->calls);
    return status;
}

static void idle(crudd_backend *backend) {
    enter(&backend->calls);
    counters[IDLES]++;
    sem_post(&events[IDLED]);
    leave(&backend->calls);
}

static uint64_t backend_capabilities(crudd_backend *backend) { return ~backend->lacks; }

static const crudd_plugin plugin = {
    .struct_size = sizeof(crudd_plugin),
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
    .end_snapshot = end_snapshot,
    .read = read_records,
    .scan = scan_records,
    .count = count_records,
    .query = query_records,
    .write = write_records,
    .idle = idle,
    .backend_capabilities = backend_capabilities,
};

const crudd_plugin *crudd_plugin_entry(void) { return &plugin; }
