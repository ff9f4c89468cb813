// A plugin that breaks one rule of the contract, for tests of the conformance suite: all of another plugin, whose shared
// object is compiled in as -DPLUGIN="…", but for the fault that -DFAULT=… names.

#include <crudd_plugin.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NONE,
    UNKNOWN_CAPABILITY, MISSING_VERSION, TOUCHES_STORAGE, ODD_POINTER, UNDECLARED_CAPABILITY,
    ALWAYS_CREATES, LISTS_TWICE, NEVER_DROPS, FOLDS_NAMES, IGNORES_FORMAT, UNTERMINATED_TEXT, OVERRUNS_FAILURE,
    IGNORES_ABSENT, NEVER_REPLACES, WRITES_A_HUNDRED, WRITES_ONE_COLLECTION, IGNORES_ATOMIC, PASSES_CHECKS,
    TAKES_ATOMIC, SHIFTS_POSITIONS, ALWAYS_ITEMS, INCLUDES_AFTER, IGNORES_LIMIT, IGNORES_STOP, REVERSES,
    IGNORES_COUNT_PREFIX, KEEPS_SNAPSHOT, READS_SLOWLY, REFUSES_BESIDE_WRITES, FOLDS_IDS, CHANGES_ITEMS,
    CUTS_REVISIONS, CUTS_ITEMS, FORGETS, LOSES_WRITES, CRASHES, IGNORES_FILTER, IGNORES_COUNT_FILTER, IGNORES_SORT,
    IGNORES_AFTER, TAKES_FILTER,
};

static const crudd_plugin *real;
static crudd_plugin table;
static atomic_int writing;
static crudd_collection *storm;

static char *text(crudd_bytes bytes) {
    char *copy = malloc(bytes.size + 1);
    if (bytes.size) memcpy(copy, bytes.data, bytes.size);
    copy[bytes.size] = 0;
    return copy;
}

static crudd_bytes folded(crudd_bytes bytes) {
    char *copy = text(bytes);
    for (size_t at = 0; at < bytes.size; at++) {
        if (copy[at] >= 'A' && copy[at] <= 'Z') copy[at] += 'a' - 'A';
    }
    return (crudd_bytes){(uint8_t *)copy, bytes.size};
}

static crudd_bytes same(crudd_bytes bytes) { return (crudd_bytes){(uint8_t *)text(bytes), bytes.size}; }

// MARK: Options and storage

/// The value of "path" in the options.
static char *path(crudd_bytes options) {
    char *copy = text(options), *found = strstr(copy, "\"path\":\"");
    if (!found) return NULL;
    char *end = strchr(found + 8, '"');
    *end = 0;
    return found + 8;
}

static crudd_status check_options(crudd_bytes options, crudd_failure *failure) {
    if (FAULT == TOUCHES_STORAGE && path(options)) close(open(path(options), O_CREAT | O_RDWR, 0600));
    crudd_status status = real->check_options(options, failure);
    if (FAULT == ODD_POINTER && status != CRUDD_OK) strcpy(failure->pointer, "path");
    return status;
}

static crudd_status open_backend(crudd_bytes options, const crudd_host *host, crudd_backend **backend,
                                 crudd_failure *failure) {
    if (FAULT == FORGETS) unlink(path(options));
    return real->open(options, host, backend, failure);
}

static uint64_t backend_capabilities(crudd_backend *backend) {
    uint64_t capabilities = real->backend_capabilities(backend);
    return FAULT == UNDECLARED_CAPABILITY ? capabilities : capabilities & table.capabilities;
}

// MARK: Collections

static crudd_status failed(crudd_status status, crudd_failure *failure) {
    if (status == CRUDD_OK) return status;
    if (FAULT == UNTERMINATED_TEXT) memset(failure->message, 'x', sizeof failure->message);
    if (FAULT == OVERRUNS_FAILURE) memset(failure->pointer, 0, sizeof failure->pointer + 16);
    return status;
}

static crudd_status open_collection(crudd_backend *backend, const crudd_collection_spec *spec,
                                    crudd_collection **collection, crudd_failure *failure) {
    crudd_collection_spec changed = *spec;
    if (FAULT == ALWAYS_CREATES) changed.flags |= CRUDD_OPEN_CREATE;
    if (FAULT == FOLDS_NAMES) changed.name = folded(spec->name);
    if (FAULT == IGNORES_FORMAT) changed.format = (crudd_bytes){(const uint8_t *)"json", 4};
    crudd_status status = real->open_collection(backend, &changed, collection, failure);
    if (status == CRUDD_OK && strstr(text(spec->name), "storm")) storm = *collection;
    return failed(status, failure);
}

static crudd_status drop_collection(crudd_backend *backend, crudd_bytes name, crudd_failure *failure) {
    if (FAULT == NEVER_DROPS) return CRUDD_OK;
    return failed(real->drop_collection(backend, FAULT == FOLDS_NAMES ? folded(name) : name, failure), failure);
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

static crudd_status list_collections(crudd_backend *backend, crudd_emit_name emit, void *context,
                                     crudd_failure *failure) {
    if (FAULT != LISTS_TWICE) return real->list_collections(backend, emit, context, failure);
    names names = {emit, context};
    return real->list_collections(backend, emit_twice, &names, failure);
}

// MARK: Reading

static void end_snapshot(crudd_reader *reader) {
    if (FAULT != KEEPS_SNAPSHOT && real->end_snapshot) real->end_snapshot(reader);
}

typedef struct sink {
    crudd_emit emit;
    void *context;
    int is_stopped;
    size_t count;
    struct { crudd_bytes id, item, revision; } kept[1100];
} sink;

static int32_t emit(void *context, size_t index, crudd_bytes id, crudd_bytes item, crudd_bytes revision) {
    sink *sink = context;
    if (FAULT == REVERSES) {
        sink->kept[sink->count].id = same(id);
        sink->kept[sink->count].item = same(item);
        sink->kept[sink->count++].revision = same(revision);
        return 0;
    }
    if (FAULT == SHIFTS_POSITIONS) index += 1;
    int32_t answer = sink->emit(sink->context, index, id, item, revision);
    return FAULT == IGNORES_STOP ? 0 : answer;
}

static crudd_status read_records(crudd_reader *reader, const crudd_read *request, crudd_failure *failure) {
    if (FAULT == READS_SLOWLY) usleep(3000);
    if (FAULT == REFUSES_BESIDE_WRITES && writing) return CRUDD_UNAVAILABLE;
    crudd_read changed = *request;
    if (FAULT == ALWAYS_ITEMS) changed.flags = 0;
    if (FAULT == SHIFTS_POSITIONS) {
        sink sink = {request->emit, request->context};
        changed.emit = emit;
        changed.context = &sink;
        return real->read(reader, &changed, failure);
    }
    crudd_bytes *ids = malloc((request->count + 1) * sizeof *ids);
    for (size_t at = 0; at < request->count; at++) {
        ids[at] = FAULT == FOLDS_IDS ? folded(request->ids[at]) : request->ids[at];
    }
    changed.ids = ids;
    crudd_status status = real->read(reader, &changed, failure);
    free(ids);
    return status;
}

static crudd_status scan(crudd_reader *reader, const crudd_scan *request, crudd_failure *failure) {
    if (FAULT == CRASHES) abort();
    crudd_scan changed = *request;
    if (FAULT == INCLUDES_AFTER && changed.after.size) {
        // Nothing but ids of one byte less stands between.
        changed.after = same(changed.after);
        ((uint8_t *)changed.after.data)[changed.after.size - 1] -= 1;
    }
    if (FAULT == IGNORES_LIMIT) changed.limit = 0;
    sink *sink = calloc(1, sizeof *sink);
    sink->emit = request->emit;
    sink->context = request->context;
    if (FAULT == IGNORES_STOP || FAULT == REVERSES) {
        changed.emit = emit;
        changed.context = sink;
    }
    crudd_status status = real->scan(reader, &changed, failure);
    for (size_t index = 0; index < sink->count; index++) {
        size_t at = sink->count - 1 - index;
        if (request->emit(request->context, index, sink->kept[at].id, sink->kept[at].item, sink->kept[at].revision)) break;
    }
    free(sink);
    return status;
}

static crudd_status count(crudd_reader *reader, const crudd_count *request, uint64_t *result, crudd_failure *failure) {
    crudd_count changed = *request;
    if (FAULT == IGNORES_COUNT_PREFIX) changed.prefix.size = 0;
    if (FAULT == IGNORES_COUNT_FILTER) changed.filter.size = 0;
    return real->count(reader, &changed, result, failure);
}

static crudd_status query(crudd_reader *reader, const crudd_query *request, crudd_failure *failure) {
    crudd_query changed = *request;
    if (FAULT == IGNORES_FILTER) changed.filter.size = 0;
    if (FAULT == IGNORES_SORT) changed.sort.size = changed.after.size = 0;
    if (FAULT == IGNORES_AFTER) changed.after.size = 0;
    return real->query(reader, &changed, failure);
}

// MARK: Writing

static crudd_mutation changed(crudd_mutation mutation) {
    if (FAULT == IGNORES_ABSENT && mutation.precondition == CRUDD_IF_ABSENT && mutation.kind == CRUDD_PUT) {
        mutation.precondition = CRUDD_IF_ANY;
    }
    if (FAULT == PASSES_CHECKS && mutation.kind == CRUDD_CHECK) mutation.precondition = CRUDD_IF_ANY;
    if (FAULT == FOLDS_IDS) mutation.id = folded(mutation.id);
    if (FAULT == CUTS_REVISIONS && mutation.revision.size > 32) mutation.revision.size = 32;
    if (FAULT == CUTS_ITEMS && mutation.item.size > 1 << 20) mutation.item.size = 1 << 20;
    if (FAULT == CHANGES_ITEMS) {
        mutation.item = same(mutation.item);
        for (size_t at = 0; at < mutation.item.size; at++) {
            if (mutation.item.data[at] == '\r') ((uint8_t *)mutation.item.data)[at] = '\n';
        }
    }
    return mutation;
}

static crudd_status write_batch(crudd_backend *backend, const crudd_write *request, crudd_failure *failure) {
    static int batches;
    if (FAULT == LOSES_WRITES && request->count && request->mutations[0].collection == storm && ++batches % 3 == 0) {
        return CRUDD_OK;
    }
    crudd_write batch = *request;
    if (FAULT == IGNORES_ATOMIC) batch.flags = 0;
    if (FAULT == TAKES_ATOMIC) batch.flags = 0;
    if (FAULT == WRITES_A_HUNDRED && batch.count > 100) batch.count = 100;
    crudd_mutation *mutations = malloc((batch.count + 1) * sizeof *mutations);
    size_t kept = 0;
    for (; kept < batch.count; kept++) {
        if (FAULT == WRITES_ONE_COLLECTION && request->mutations[kept].collection != request->mutations[0].collection) break;
        mutations[kept] = changed(request->mutations[kept]);
    }
    batch.mutations = mutations;
    batch.count = kept;
    writing = 1;
    crudd_status status = real->write(backend, &batch, failure);
    writing = 0;
    free(mutations);
    if (FAULT == NEVER_REPLACES) {
        for (size_t at = 0; at < batch.count; at++) batch.outcomes[at].replaced = 0;
    }
    return status;
}

// MARK: The table

const crudd_plugin *crudd_plugin_entry(void) {
    const crudd_plugin *(*entry)(void) = dlsym(dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL), "crudd_plugin_entry");
    real = entry();
    table = *real;
    table.check_options = check_options;
    table.open = open_backend;
    table.backend_capabilities = backend_capabilities;
    table.open_collection = open_collection;
    table.drop_collection = drop_collection;
    table.list_collections = list_collections;
    table.end_snapshot = end_snapshot;
    table.read = read_records;
    table.scan = scan;
    table.count = count;
    table.query = query;
    table.write = write_batch;
    if (FAULT == UNKNOWN_CAPABILITY) table.capabilities |= UINT64_C(1) << 40;
    if (FAULT == MISSING_VERSION) table.version = "";
    if (FAULT == UNDECLARED_CAPABILITY) table.capabilities &= ~(uint64_t)CRUDD_IS_DURABLE;
    if (FAULT == TAKES_ATOMIC) table.capabilities &= ~(uint64_t)CRUDD_HAS_TRANSACTIONS;
    if (FAULT == TAKES_FILTER) table.capabilities &= ~(uint64_t)CRUDD_CAN_QUERY;
    return &table;
}
