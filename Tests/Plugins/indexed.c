// The plugin of Plugins/Examples/memory.c with what tests of index builds need: records survive that the backend is
// closed, calls are counted, and a test holds back the writes of keys. As its calls are serialized here, it reads
// concurrently. A record whose id begins with "stuck" cannot be removed, and a
// write that would remove one whose id begins with "broken" fails as a whole.
//
// Each test loads a copy of the shared object, which has records and counters of its own.

#define crudd_plugin_entry memory_entry
#include "../../Plugins/Examples/memory.c"
#undef crudd_plugin_entry

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

// MARK: What a test sees

enum { KEYS_SET, KEY_WRITES, SCANS, OPENED_COLLECTIONS, COUNTERS };

static atomic_long counters[COUNTERS];
static atomic_int is_gated, fails_scans;
static sem_t gate, arrivals;

__attribute__((constructor)) static void prepare(void) {
    sem_init(&gate, 0, 0);
    sem_init(&arrivals, 0, 0);
}

long indexed_counter(int counter) { return counters[counter]; }

/// From now on a write of keys waits until the test lets it pass.
void indexed_close_gate(void) { is_gated = 1; }

/// Lets the writes of keys pass that wait and that come.
void indexed_open_gate(void) {
    is_gated = 0;
    sem_post(&gate);
}

/// Lets one write of keys pass.
void indexed_pass(void) { sem_post(&gate); }

/// Waits until another write of keys has come to the gate; 0 if none does in time.
int indexed_await(int seconds) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += seconds;
    return sem_timedwait(&arrivals, &deadline) == 0;
}

/// Has scans of collections whose names begin with "broken" fail.
void indexed_fail_scans(int fails) { fails_scans = fails; }

// MARK: The plugin

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const crudd_plugin *memory;
static crudd_backend *kept;
static uint64_t last_sequence;

static crudd_status open_kept(crudd_bytes options, const crudd_host *host, const crudd_call *call,
                              crudd_backend **backend, crudd_opened *opened, crudd_failure *failure) {
    crudd_status status = kept ? CRUDD_OK : memory->open(options, host, call, &kept, opened, failure);
    *backend = kept;
    opened->last_sequence = last_sequence;
    return status;
}

static int begins(crudd_bytes bytes, const char *prefix) {
    return bytes.size >= strlen(prefix) && memcmp(bytes.data, prefix, strlen(prefix)) == 0;
}

static void close_kept(crudd_backend *backend) {}

static crudd_status open_counted(crudd_backend *backend, const crudd_call *call, const crudd_collection_spec *spec,
                                 crudd_collection **collection, crudd_failure *failure) {
    pthread_mutex_lock(&lock);
    counters[OPENED_COLLECTIONS]++;
    crudd_status status = memory->open_collection(backend, call, spec, collection, failure);
    pthread_mutex_unlock(&lock);
    return status;
}

static crudd_status read_locked(crudd_reader *reader, const crudd_call *call, const crudd_read *request,
                                crudd_failure *failure) {
    pthread_mutex_lock(&lock);
    crudd_status status = memory->read(reader, call, request, failure);
    pthread_mutex_unlock(&lock);
    return status;
}

static crudd_status scan_locked(crudd_reader *reader, const crudd_call *call, const crudd_scan *request,
                                crudd_failure *failure) {
    if (fails_scans && begins(request->collection->name, "broken")) return CRUDD_CORRUPT;
    pthread_mutex_lock(&lock);
    counters[SCANS]++;
    crudd_status status = memory->scan(reader, call, request, failure);
    pthread_mutex_unlock(&lock);
    return status;
}

static crudd_status count_locked(crudd_reader *reader, const crudd_call *call, const crudd_count *request,
                                 uint64_t *count, crudd_failure *failure) {
    pthread_mutex_lock(&lock);
    crudd_status status = memory->count(reader, call, request, count, failure);
    pthread_mutex_unlock(&lock);
    return status;
}

static crudd_status write_counted(crudd_backend *backend, const crudd_call *call, const crudd_write *request,
                                  crudd_failure *failure) {
    const crudd_mutation *mutations = request->mutations;
    int sets_keys = request->count > 0 && mutations[0].kind == CRUDD_SET_KEYS;
    if (sets_keys && is_gated) {
        sem_post(&arrivals);
        sem_wait(&gate);
    }
    pthread_mutex_lock(&lock);
    counters[KEY_WRITES] += sets_keys;
    crudd_status status = CRUDD_OK;
    for (size_t n = 0; n < request->count; n++) {
        if (mutations[n].kind == CRUDD_REMOVE && begins(mutations[n].record->id, "broken")) status = CRUDD_INTERNAL;
    }
    for (size_t n = 0; n < request->count && status == CRUDD_OK; n++) {
        const crudd_mutation *mutation = &mutations[n];
        crudd_write single = *request;
        single.mutations = mutation;
        single.outcomes = &request->outcomes[n];
        single.count = 1;
        if (mutation->kind == CRUDD_REMOVE && begins(mutation->record->id, "stuck")) {
            single.outcomes->status = CRUDD_NO_SPACE;
        } else {
            status = memory->write(backend, call, &single, failure);
        }
        if (mutation->record->sequence > last_sequence) last_sequence = mutation->record->sequence;
        counters[KEYS_SET] += mutation->kind == CRUDD_SET_KEYS && single.outcomes->status == CRUDD_OK;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

const crudd_plugin *crudd_plugin_entry(void) {
    static crudd_plugin plugin;
    memory = memory_entry();
    plugin = *memory;
    plugin.capabilities |= CRUDD_CAN_READ_CONCURRENTLY | CRUDD_CAN_READ_FAST;
    plugin.open = open_kept;
    plugin.close = close_kept;
    plugin.open_collection = open_counted;
    plugin.read = read_locked;
    plugin.scan = scan_locked;
    plugin.count = count_locked;
    plugin.write = write_counted;
    return &plugin;
}
