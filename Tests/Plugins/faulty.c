// A plugin that breaks one rule of the contract, for tests of the conformance suite: it passes every call on to another
// plugin, whose shared object is compiled in as -DPLUGIN="…", but for the fault that -DFAULT=… names.

#include <crudd_plugin.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    NONE,
    // No faults: sizes that the host has to expect.
    SHORT_TABLE, LONG_TABLE, LONG_RECORDS,
    // No fault: storage that others write too, and that numbers changes itself.
    SHARED,
    UNKNOWN_CAPABILITY, MISSING_VERSION, MISSING_FUNCTION, TOUCHES_STORAGE, ODD_POINTER, UNDECLARED_CAPABILITY,
    DENIES_CAPABILITIES,
    TAKES_ATOMIC, TAKES_KEYS, STRICT_SIZES, OWN_OUTCOME_SIZE, WRONG_CLOCK, IGNORES_INTERRUPTS, CHANGES_VERSION,
    MISSES_CHANGES,
    ALWAYS_CREATES, LISTS_TWICE, NEVER_DROPS, FOLDS_NAMES, IGNORES_FORMAT, UNTERMINATED_TEXT, OVERRUNS_FAILURE,
    IGNORES_ABSENT, NEVER_REPLACES, TAKES_UNDEFINED, WRITES_A_HUNDRED, WRITES_ONE_COLLECTION, IGNORES_ATOMIC,
    PASSES_CHECKS, SHIFTS_POSITIONS, ALWAYS_ITEMS, EMITS_KEYS, UNSIZED_RECORDS, KEEPS_SNAPSHOT, READS_SLOWLY,
    REFUSES_BESIDE_WRITES, INCLUDES_AFTER, IGNORES_LIMIT, IGNORES_STOP, IGNORES_REVERSE, IGNORES_UPPER,
    INCLUDES_UPPER_KEY, LISTS_KEYED, INCLUDES_UPPER_SEQUENCE, IGNORES_COUNT_RANGE, SWAPS_KEYS, SETS_KEYS_ANYWAY,
    NEVER_DROPS_INDEXES, FORGETS_SEQUENCES, EXPIRES_LATE, FOLDS_IDS, CHANGES_ITEMS, CUTS_REVISIONS, CUTS_ITEMS, FORGETS,
    FORGETS_LAST_SEQUENCE, LOSES_WRITES, STARTS_AGAIN, CRASHES, LISTS_SEQUENCED, FORGETS_REMOVALS, COUNTS_REMOVALS,
    CHANGES_IDENTITY, KEEPS_IDENTITY, FORGETS_FORGOTTEN, LOSES_TAKEN, TRIMS_ALL, EXPIRES_EARLY, IGNORES_EXPIRY_LIMIT,
    SKIPS_EXPIRY_NUMBERS, HIDES_NEXT_EXPIRY, NUMBERS_EXPIRY_TWICE, CHANGES_WHAT_IT_LOOKS_AT, CHANGES_STORAGE_IDENTITY,
    IGNORES_EXPECTED_STORAGE, COPIES_NOTHING,
    // These are faults of SHARED.
    ENDS_EARLY, CHANGES_HISTORY, NEXT_FALLS,
};

static const crudd_plugin *real;
static atomic_int writing;
static crudd_collection *crash_workload;

static const int is_shared = FAULT == SHARED || FAULT == ENDS_EARLY || FAULT == CHANGES_HISTORY || FAULT == NEXT_FALLS;
/// Of SHARED: what was opened last, and the last number of its own.
static const crudd_host *opened_host;
static crudd_backend *opened_backend;
static crudd_bytes opened_name;
static _Atomic uint64_t last_number;

static struct {
    crudd_plugin plugin;
    void (*unknown)(void);
} table;

/// A copy, terminated, that is never freed: these processes are short.
static char *text(crudd_bytes bytes) {
    char *copy = malloc(bytes.size + 1);
    if (bytes.size) memcpy(copy, bytes.data, bytes.size);
    copy[bytes.size] = 0;
    return copy;
}

static crudd_bytes same(crudd_bytes bytes) { return (crudd_bytes){(uint8_t *)text(bytes), bytes.size}; }

static crudd_bytes folded(crudd_bytes bytes) {
    char *copy = text(bytes);
    for (size_t at = 0; at < bytes.size; at++) {
        if (copy[at] >= 'A' && copy[at] <= 'Z') copy[at] += 'a' - 'A';
    }
    return (crudd_bytes){(uint8_t *)copy, bytes.size};
}

static crudd_call changed_call(const crudd_call *call) {
    crudd_call changed = *call;
    if (FAULT == IGNORES_INTERRUPTS) changed.interrupted = NULL;
    if (FAULT == EXPIRES_LATE) changed.now -= 1;
    return changed;
}

/// Whether a call is refused: its structs are longer than here, or it is late by another clock than the host's.
static int is_refused(const crudd_call *call, size_t struct_size, size_t known_size) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (FAULT == STRICT_SIZES && struct_size != known_size)
        || (FAULT == WRONG_CLOCK && call->deadline && call->deadline < now.tv_sec * INT64_C(1000000000));
}

// MARK: Options and storage

/// The value of "path" in the options.
static char *path(crudd_bytes options) {
    char *found = strstr(text(options), "\"path\":\"");
    if (!found) return NULL;
    *strchr(found + 8, '"') = 0;
    return found + 8;
}

static crudd_status check_options(crudd_bytes options, crudd_failure *failure) {
    if (FAULT == TOUCHES_STORAGE && path(options)) close(open(path(options), O_CREAT | O_RDWR, 0600));
    crudd_status status = real->check_options(options, failure);
    if (FAULT == ODD_POINTER && status != CRUDD_OK) strcpy(failure->pointer, "path");
    return status;
}

static uint64_t no_capabilities(crudd_bytes options) {
    (void)options;
    return 0;
}

static crudd_status open_backend(crudd_bytes options, const crudd_host *host, const crudd_call *call,
                                 crudd_backend **backend, crudd_opened *opened, crudd_failure *failure) {
    if (FAULT == FORGETS) unlink(path(options));
    static crudd_host changed;
    changed = *host;
    if (FAULT == IGNORES_EXPECTED_STORAGE) changed.expected_storage = 0;
    crudd_status status = real->open(options, &changed, call, backend, opened, failure);
    opened->capabilities &= table.plugin.capabilities;
    if (is_shared && status == CRUDD_OK) {
        opened_host = &changed;
        opened_backend = *backend;
        last_number = opened->last_sequence;
        opened->last_sequence = 0;
        opened->capabilities |= CRUDD_IS_SHARED;
    }
    if (FAULT == UNDECLARED_CAPABILITY) opened->capabilities |= CRUDD_IS_DURABLE;
    if (FAULT == FORGETS_LAST_SEQUENCE) opened->last_sequence = 0;
    if (FAULT == CHANGES_STORAGE_IDENTITY) opened->identity = (uint64_t)random() + 1;
    return status;
}

// MARK: Collections

static crudd_status failed(crudd_status status, crudd_failure *failure) {
    if (status == CRUDD_OK) return status;
    if (FAULT == UNTERMINATED_TEXT) memset(failure->message, 'x', sizeof failure->message);
    if (FAULT == OVERRUNS_FAILURE) memset(failure->pointer, 0, sizeof failure->pointer + 16);
    return status;
}

/// Adds those indexes that any collection had before.
static void keep_indexes(crudd_collection_spec *spec) {
    static crudd_bytes kept[16];
    static size_t count;
    size_t given = spec->index_count;
    crudd_bytes *indexes = malloc((given + count) * sizeof *indexes);
    memcpy(indexes, spec->indexes, given * sizeof *indexes);
    for (size_t old = 0; old < count; old++) {
        int is_given = 0;
        for (size_t n = 0; n < given; n++) is_given |= !strcmp(text(spec->indexes[n]), text(kept[old]));
        if (!is_given) indexes[spec->index_count++] = kept[old];
    }
    spec->indexes = indexes;
    for (count = 0; count < spec->index_count; count++) kept[count] = same(indexes[count]);
}

static crudd_status open_collection(crudd_backend *backend, const crudd_call *call, const crudd_collection_spec *spec,
                                    crudd_collection **collection, crudd_failure *failure) {
    crudd_collection_spec changed = *spec;
    if (FAULT == ALWAYS_CREATES) changed.flags |= CRUDD_OPEN_CREATE;
    if (FAULT == CHANGES_WHAT_IT_LOOKS_AT) changed.flags &= ~(uint32_t)CRUDD_OPEN_AS_IT_IS;
    if (FAULT == FOLDS_NAMES) changed.name = folded(spec->name);
    if (FAULT == IGNORES_FORMAT) changed.format = (crudd_bytes){(const uint8_t *)"json", 4};
    if (FAULT == NEVER_DROPS_INDEXES) keep_indexes(&changed);
    crudd_status status = real->open_collection(backend, call, &changed, collection, failure);
    if (status == CRUDD_OK && strstr(text(spec->name), "crash workload")) crash_workload = *collection;
    opened_name = same(spec->name);
    return failed(status, failure);
}

static crudd_status drop_collection(crudd_backend *backend, const crudd_call *call, crudd_bytes name,
                                    crudd_failure *failure) {
    if (FAULT == NEVER_DROPS) return CRUDD_OK;
    return failed(real->drop_collection(backend, call, FAULT == FOLDS_NAMES ? folded(name) : name, failure), failure);
}

typedef struct names {
    crudd_emit_name emit;
    void *context;
} names;

static void emit_twice(void *context, crudd_bytes name) {
    names *names = context;
    names->emit(names->context, name);
    names->emit(names->context, name);
}

static crudd_status list_collections(crudd_backend *backend, const crudd_call *call, crudd_emit_name emit,
                                     void *context, crudd_failure *failure) {
    if (FAULT != LISTS_TWICE) return real->list_collections(backend, call, emit, context, failure);
    names names = {emit, context};
    return real->list_collections(backend, call, emit_twice, &names, failure);
}

// MARK: Reading

static void end_snapshot(crudd_reader *reader) {
    if (FAULT != KEEPS_SNAPSHOT && real->end_snapshot) real->end_snapshot(reader);
}

/// Begins a call of a reader. Without end_snapshot the host may expect to see every write.
static crudd_call enter(crudd_reader *reader, const crudd_call *call) {
    if (FAULT == SHORT_TABLE && real->end_snapshot) real->end_snapshot(reader);
    return changed_call(call);
}

static uint64_t data_version(crudd_reader *reader) {
    static uint64_t calls;
    if (FAULT == CHANGES_VERSION) return ++calls;
    return FAULT == MISSES_CHANGES ? 7 : real->data_version ? real->data_version(reader) : 0;
}

typedef struct sink {
    crudd_emit emit;
    void *context;
} sink;

static int32_t emit(void *context, size_t index, const crudd_record *record) {
    static const crudd_bytes key = {(const uint8_t *)"key", 3};
    sink *sink = context;
    struct { crudd_record record; uint8_t unknown[64]; } changed;
    memset(&changed, 0xA5, sizeof changed);
    changed.record = *record;
    if (FAULT == FORGETS_REMOVALS && (record->flags & CRUDD_RECORD_REMOVED)) return 0;
    if (FAULT == LONG_RECORDS) changed.record.struct_size = sizeof changed;
    if (FAULT == UNSIZED_RECORDS) changed.record.struct_size = 0;
    if (FAULT == EMITS_KEYS) changed.record.keys = &key;
    if (FAULT == SHIFTS_POSITIONS) index += 1;
    int32_t result = sink->emit(sink->context, index, &changed.record);
    return FAULT == IGNORES_STOP ? 0 : result;
}

static crudd_status read_records(crudd_reader *reader, const crudd_call *call, const crudd_read *request,
                                 crudd_failure *failure) {
    if (FAULT == READS_SLOWLY) usleep(3000);
    if (FAULT == REFUSES_BESIDE_WRITES && writing) return CRUDD_UNAVAILABLE;
    if (is_refused(call, request->struct_size, sizeof *request)) return CRUDD_INTERNAL;
    crudd_read changed = *request;
    if (FAULT == ALWAYS_ITEMS) changed.flags = 0;
    crudd_bytes *ids = malloc((request->count + 1) * sizeof *ids);
    for (size_t at = 0; at < request->count; at++) {
        ids[at] = FAULT == FOLDS_IDS ? folded(request->ids[at]) : request->ids[at];
    }
    changed.ids = ids;
    sink sink = {request->emit, request->context};
    changed.emit = emit;
    changed.context = &sink;
    crudd_call entered = enter(reader, call);
    crudd_status status = real->read(reader, &entered, &changed, failure);
    free(ids);
    return status;
}

static crudd_range changed_range(const crudd_range *range) {
    crudd_range changed = *range;
    if (FAULT == TAKES_KEYS) changed.order = CRUDD_BY_ID;
    if (FAULT == IGNORES_UPPER) changed.upper.size = 0;
    if (FAULT == LISTS_KEYED) changed.flags = 0;
    if (FAULT == LISTS_SEQUENCED && changed.order == CRUDD_BY_SEQUENCE && changed.flags) {
        changed.order = CRUDD_BY_ID;
        changed.flags = 0;
    }
    if (FAULT == INCLUDES_UPPER_SEQUENCE && changed.upper_sequence) changed.upper_sequence += 1;
    if (FAULT == INCLUDES_UPPER_KEY && changed.order == CRUDD_BY_KEY && changed.upper.size) {
        // The copy ends in a zero byte.
        changed.upper = same(changed.upper);
        changed.upper.size += 1;
    }
    return changed;
}

static crudd_status scan(crudd_reader *reader, const crudd_call *call, const crudd_scan *request,
                         crudd_failure *failure) {
    if (FAULT == CRASHES) abort();
    if (is_refused(call, request->struct_size, sizeof *request)) return CRUDD_INTERNAL;
    crudd_scan changed = *request;
    crudd_range range = changed_range(request->range);
    changed.range = &range;
    if (FAULT == INCLUDES_AFTER && changed.after_id.size) {
        // Nothing but ids of one byte less stands between.
        changed.after_id = same(changed.after_id);
        ((uint8_t *)changed.after_id.data)[changed.after_id.size - 1] -= 1;
    }
    if (FAULT == STARTS_AGAIN && (changed.flags & CRUDD_SCAN_ANY_ORDER)) {
        changed.after_id.size = 0;
        changed.after_position = 0;
    }
    if (FAULT == IGNORES_LIMIT) changed.limit = 0;
    if (FAULT == IGNORES_REVERSE) changed.flags &= ~(uint32_t)CRUDD_SCAN_REVERSE;
    sink sink = {request->emit, request->context};
    changed.emit = FAULT == SHIFTS_POSITIONS ? request->emit : emit;
    changed.context = FAULT == SHIFTS_POSITIONS ? request->context : &sink;
    crudd_call entered = enter(reader, call);
    return real->scan(reader, &entered, &changed, failure);
}

static crudd_status count(crudd_reader *reader, const crudd_call *call, const crudd_count *request, uint64_t *result,
                          crudd_failure *failure) {
    crudd_count changed = *request;
    crudd_range range = changed_range(request->range);
    changed.range = &range;
    if (FAULT == IGNORES_COUNT_RANGE) range.lower.size = range.upper.size = 0;
    crudd_call entered = enter(reader, call);
    crudd_status status = real->count(reader, &entered, &changed, result, failure);
    if (FAULT == COUNTS_REMOVALS && range.order == CRUDD_BY_SEQUENCE) *result += 1;
    return status;
}

// MARK: Writing

/// - Parameter record: becomes the record of the mutation.
static crudd_mutation changed_mutation(crudd_mutation mutation, crudd_record *record) {
    *record = *mutation.record;
    record->struct_size = sizeof *record;
    mutation.record = record;
    if (FAULT == IGNORES_ABSENT && mutation.precondition == CRUDD_IF_ABSENT && mutation.kind == CRUDD_PUT) {
        mutation.precondition = CRUDD_IF_ANY;
    }
    if (FAULT == PASSES_CHECKS && mutation.kind == CRUDD_CHECK) mutation.precondition = CRUDD_IF_ANY;
    if (FAULT == FORGETS_SEQUENCES) record->sequence = 0;
    if (is_shared) record->sequence = last_number += 3;
    if (FAULT == FOLDS_IDS) record->id = folded(record->id);
    if (FAULT == CUTS_REVISIONS && record->revision.size > 32) record->revision.size = 32;
    if (FAULT == CUTS_ITEMS && record->item.size > 1 << 20) record->item.size = 1 << 20;
    if (FAULT == CHANGES_ITEMS) {
        record->item = same(record->item);
        for (size_t at = 0; at < record->item.size; at++) {
            uint8_t *byte = (uint8_t *)&record->item.data[at];
            if (*byte == '\r') *byte = '\n';
        }
    }
    if (FAULT == SWAPS_KEYS && record->key_count == 2) {
        crudd_bytes *keys = malloc(2 * sizeof *keys);
        keys[0] = record->keys[1];
        keys[1] = record->keys[0];
        record->keys = keys;
    }
    return mutation;
}

static const crudd_mutation *mutation_at(const crudd_write *request, size_t index) {
    return (const crudd_mutation *)((const char *)request->mutations + index * request->mutation_size);
}

static crudd_status write_batch(crudd_backend *backend, const crudd_call *call, const crudd_write *request,
                                crudd_failure *failure) {
    static int batches;
    if (is_refused(call, request->struct_size, sizeof *request)) return CRUDD_INTERNAL;
    if (FAULT == LOSES_WRITES && request->count && request->mutations->collection == crash_workload
        && ++batches % 3 == 0) {
        return CRUDD_OK;
    }
    crudd_write batch = *request;
    if (FAULT == IGNORES_ATOMIC || FAULT == TAKES_ATOMIC) batch.flags = 0;
    if (FAULT == OWN_OUTCOME_SIZE) batch.outcome_size = sizeof(crudd_outcome);
    if (FAULT == WRITES_A_HUNDRED && batch.count > 100) batch.count = 100;
    crudd_mutation *mutations = malloc((batch.count + 1) * sizeof *mutations);
    crudd_record *records = malloc((batch.count + 1) * sizeof *records);
    size_t kept = 0;
    for (; kept < batch.count; kept++) {
        const crudd_mutation *mutation = mutation_at(request, kept);
        if (FAULT == WRITES_ONE_COLLECTION && mutation->collection != request->mutations->collection) break;
        mutations[kept] = changed_mutation(*mutation, &records[kept]);
        mutations[kept].struct_size = sizeof *mutations;
        if ((FAULT == SETS_KEYS_ANYWAY && mutation->kind == CRUDD_SET_KEYS)
            || (FAULT == TAKES_UNDEFINED && mutation->kind == CRUDD_CHECK && !(batch.flags & CRUDD_WRITE_ATOMIC))) {
            mutations[kept].kind = CRUDD_PUT;
            mutations[kept].precondition = CRUDD_IF_PRESENT;
            records[kept].item = records[kept].revision = (crudd_bytes){(const uint8_t *)"x", 1};
        }
    }
    batch.mutations = mutations;
    batch.mutation_size = sizeof *mutations;
    batch.count = kept;
    writing = 1;
    crudd_call entered = changed_call(call);
    crudd_status status = real->write(backend, &entered, &batch, failure);
    writing = 0;
    if (is_shared) opened_host->changed(opened_host->context, opened_name);
    free(mutations);
    free(records);
    for (size_t at = 0; FAULT == NEVER_REPLACES && at < batch.count; at++) {
        ((crudd_outcome *)((char *)batch.outcomes + at * batch.outcome_size))->replaced = 0;
    }
    return status;
}

// MARK: Expiry and removals

static crudd_status remove_expired(crudd_backend *backend, const crudd_call *call, const crudd_expire *request,
                                   int64_t *next_expiry, crudd_failure *failure) {
    crudd_call changed_call = *call;
    crudd_expire changed = *request;
    if (FAULT == EXPIRES_EARLY) changed_call.now += 1;
    if (FAULT == IGNORES_EXPIRY_LIMIT && changed.limit) changed.limit += 1;
    if (FAULT == SKIPS_EXPIRY_NUMBERS) changed.first_sequence += 1;
    if (FAULT == NUMBERS_EXPIRY_TWICE) changed.first_sequence = 1;
    if (is_shared) {
        changed.first_sequence = last_number + 1;
        last_number += changed.limit;
    }
    crudd_status status = real->remove_expired(backend, &changed_call, &changed, next_expiry, failure);
    if (FAULT == HIDES_NEXT_EXPIRY) *next_expiry = 0;
    return status;
}

static crudd_status trim_history(crudd_backend *backend, const crudd_call *call, const crudd_trim *request,
                                 crudd_history *history, crudd_failure *failure) {
    static uint64_t calls;
    crudd_trim changed = *request;
    if (FAULT == TRIMS_ALL && changed.limit) changed.before = INT64_MAX;
    crudd_status status = real->trim_history(backend, call, &changed, history, failure);
    if (FAULT == CHANGES_IDENTITY) history->identity = ++calls;
    if (FAULT == KEEPS_IDENTITY) history->identity = 1;
    if (FAULT == FORGETS_FORGOTTEN && !changed.limit) history->forgotten = 0;
    return status;
}

static crudd_status take_history(crudd_backend *backend, const crudd_call *call, const crudd_taken_history *request,
                                 crudd_failure *failure) {
    crudd_taken_history changed = *request;
    if (FAULT == LOSES_TAKEN) changed.count = 0;
    return real->take_history(backend, call, &changed, failure);
}

static crudd_status read_history(crudd_reader *reader, const crudd_call *call, const crudd_collection *collection,
                                 crudd_history *history, crudd_failure *failure) {
    static uint64_t calls;
    (void)reader;
    crudd_trim request = {.struct_size = sizeof request, .collection = (crudd_collection *)collection};
    crudd_status status = real->trim_history(opened_backend, call, &request, history, failure);
    calls++;
    if (FAULT == CHANGES_HISTORY) history->identity = calls;
    history->end = last_number;
    history->next = history->end + 1;
    if (FAULT == ENDS_EARLY && history->end) history->end -= 1;
    if (FAULT == NEXT_FALLS) history->next = UINT64_MAX - calls;
    return status;
}

// MARK: Backups

static crudd_status step_backup(crudd_backup *backup, const crudd_call *call, crudd_backup_progress *progress,
                                crudd_failure *failure) {
    if (FAULT != COPIES_NOTHING) return real->step_backup(backup, call, progress, failure);
    progress->is_complete = 1;
    return CRUDD_OK;
}

// MARK: The table

const crudd_plugin *crudd_plugin_entry(void) {
    const crudd_plugin *(*entry)(void) = dlsym(dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL), "crudd_plugin_entry");
    real = entry();
    crudd_plugin *plugin = &table.plugin;
    *plugin = *real;
    plugin->check_options = check_options;
    plugin->open = open_backend;
    plugin->open_collection = open_collection;
    plugin->drop_collection = drop_collection;
    plugin->list_collections = list_collections;
    plugin->end_snapshot = end_snapshot;
    plugin->read = read_records;
    plugin->scan = scan;
    plugin->count = count;
    plugin->write = write_batch;
    plugin->data_version = data_version;
    plugin->remove_expired = remove_expired;
    plugin->trim_history = trim_history;
    plugin->take_history = take_history;
    plugin->step_backup = step_backup;
    if (is_shared) {
        plugin->capabilities |= CRUDD_IS_SHARED;
        plugin->read_history = read_history;
    }
    table.unknown = abort;
    if (FAULT == SHORT_TABLE) {
        plugin->struct_size = offsetof(crudd_plugin, end_snapshot);
        plugin->end_snapshot = (void (*)(crudd_reader *))abort;
        plugin->capabilities &= ~(uint64_t)(CRUDD_HAS_EXPIRY | CRUDD_HAS_SEQUENCES | CRUDD_TAKES_HISTORY);
    }
    if (FAULT == LONG_TABLE) plugin->struct_size = sizeof table;
    if (FAULT == DENIES_CAPABILITIES) plugin->capabilities_with = no_capabilities;
    if (FAULT == UNKNOWN_CAPABILITY) plugin->capabilities |= UINT64_C(1) << 40;
    if (FAULT == MISSING_VERSION) plugin->version = "";
    if (FAULT == MISSING_FUNCTION) plugin->count = NULL;
    if (FAULT == UNDECLARED_CAPABILITY) plugin->capabilities &= ~(uint64_t)CRUDD_IS_DURABLE;
    if (FAULT == TAKES_ATOMIC) plugin->capabilities &= ~(uint64_t)CRUDD_HAS_TRANSACTIONS;
    if (FAULT == TAKES_KEYS) plugin->capabilities &= ~(uint64_t)CRUDD_HAS_INDEXES;
    return plugin;
}
