// A storage plugin for crudd in C, against crudd_plugin.h alone: records in memory, gone when the process ends.
//
//     cc -std=c11 -shared -fPIC -I /usr/include -o example.so memory.c
//
// The contract is in Sources/CRUDPluginABI/README.md.

#include <crudd_plugin.h>
#include <stdlib.h>
#include <string.h>

typedef struct record {
    crudd_bytes id, item, revision;
} record;

struct crudd_collection {
    crudd_collection *next;
    crudd_bytes name, format;
    record *records;  // ascending by id
    size_t count, capacity;
};

struct crudd_backend {
    crudd_collection *collections;
};

struct crudd_reader {
    crudd_backend *backend;
};

static int copy(crudd_bytes from, crudd_bytes *to) {
    uint8_t *data = malloc(from.size + 1);
    if (data == NULL) return 0;
    if (from.size > 0) memcpy(data, from.data, from.size);
    *to = (crudd_bytes){data, from.size};
    return 1;
}

static void release(crudd_bytes bytes) { free((void *)bytes.data); }

static int compare(crudd_bytes a, crudd_bytes b) {
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int begins(crudd_bytes id, crudd_bytes prefix) {
    return id.size >= prefix.size && compare((crudd_bytes){id.data, prefix.size}, prefix) == 0;
}

// The place of the first record whose id is not below `id`.
static size_t place(const crudd_collection *collection, crudd_bytes id) {
    size_t low = 0, high = collection->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(collection->records[middle].id, id) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static record *find(const crudd_collection *collection, crudd_bytes id) {
    size_t at = place(collection, id);
    return at < collection->count && compare(collection->records[at].id, id) == 0 ? &collection->records[at] : NULL;
}

// Storage

static crudd_status check_options(crudd_bytes options, crudd_failure *failure) {
    if (options.size == 0 || (options.size == 2 && memcmp(options.data, "{}", 2) == 0)) return CRUDD_OK;
    strcpy(failure->message, "this plugin has no options");
    return CRUDD_INVALID_OPTIONS;
}

static crudd_status open_backend(crudd_bytes options, const crudd_host *host, crudd_backend **backend,
                                 crudd_failure *failure) {
    (void)host;
    crudd_status status = check_options(options, failure);
    if (status != CRUDD_OK) return status;
    *backend = calloc(1, sizeof **backend);
    return *backend != NULL ? CRUDD_OK : CRUDD_UNAVAILABLE;
}

static void free_collection(crudd_collection *collection) {
    for (size_t at = 0; at < collection->count; at++) {
        release(collection->records[at].id);
        release(collection->records[at].item);
        release(collection->records[at].revision);
    }
    free(collection->records);
    release(collection->name);
    release(collection->format);
    free(collection);
}

static void close_backend(crudd_backend *backend) {
    while (backend->collections != NULL) {
        crudd_collection *next = backend->collections->next;
        free_collection(backend->collections);
        backend->collections = next;
    }
    free(backend);
}

// Collections

static crudd_status open_collection(crudd_backend *backend, const crudd_collection_spec *spec,
                                    crudd_collection **collection, crudd_failure *failure) {
    (void)failure;
    for (*collection = backend->collections; *collection != NULL; *collection = (*collection)->next)
        if (compare((*collection)->name, spec->name) == 0 && compare((*collection)->format, spec->format) == 0)
            return CRUDD_OK;
    if (!(spec->flags & CRUDD_OPEN_CREATE)) return CRUDD_NOT_FOUND;
    crudd_collection *made = calloc(1, sizeof *made);
    if (made == NULL) return CRUDD_NO_SPACE;
    if (!copy(spec->name, &made->name) || !copy(spec->format, &made->format))
        return free_collection(made), CRUDD_NO_SPACE;
    made->next = backend->collections;
    *collection = backend->collections = made;
    return CRUDD_OK;
}

static crudd_status drop_collection(crudd_backend *backend, crudd_bytes name, crudd_failure *failure) {
    (void)failure;
    crudd_status status = CRUDD_NOT_FOUND;
    for (crudd_collection **link = &backend->collections; *link != NULL;) {
        crudd_collection *collection = *link;
        if (compare(collection->name, name) == 0) {
            *link = collection->next;
            free_collection(collection);
            status = CRUDD_OK;
        } else {
            link = &collection->next;
        }
    }
    return status;
}

static crudd_status list_collections(crudd_backend *backend, crudd_emit_name emit, void *context,
                                     crudd_failure *failure) {
    (void)failure;
    for (crudd_collection *each = backend->collections; each != NULL; each = each->next) {
        // One name for all its formats: only the last of them tells it.
        crudd_collection *other = each->next;
        while (other != NULL && compare(other->name, each->name) != 0) other = other->next;
        if (other == NULL) emit(context, each->name);
    }
    return CRUDD_OK;
}

// Reading

static crudd_status open_reader(crudd_backend *backend, crudd_reader **reader, crudd_failure *failure) {
    (void)failure;
    *reader = malloc(sizeof **reader);
    if (*reader == NULL) return CRUDD_UNAVAILABLE;
    (*reader)->backend = backend;
    return CRUDD_OK;
}

static void close_reader(crudd_reader *reader) { free(reader); }

static crudd_status read_records(crudd_reader *reader, const crudd_read *request, crudd_failure *failure) {
    (void)reader, (void)failure;
    for (size_t index = 0; index < request->count; index++) {
        const record *found = find(request->collection, request->ids[index]);
        if (found == NULL) continue;
        crudd_bytes item = request->flags & CRUDD_READ_WITHOUT_ITEMS ? (crudd_bytes){NULL, 0} : found->item;
        if (request->emit(request->context, index, found->id, item, found->revision) != 0) break;
    }
    return CRUDD_OK;
}

static crudd_status scan(crudd_reader *reader, const crudd_scan *request, crudd_failure *failure) {
    (void)reader, (void)failure;
    const crudd_collection *collection = request->collection;
    size_t at = place(collection, compare(request->after, request->prefix) < 0 ? request->prefix : request->after);
    size_t index = 0;
    for (; at < collection->count && (request->limit == 0 || index < request->limit); at++) {
        const record *each = &collection->records[at];
        if (request->after.size > 0 && compare(each->id, request->after) == 0) continue;
        if (!begins(each->id, request->prefix)) break;
        crudd_bytes item = request->flags & CRUDD_READ_WITHOUT_ITEMS ? (crudd_bytes){NULL, 0} : each->item;
        if (request->emit(request->context, index++, each->id, item, each->revision) != 0) break;
    }
    return CRUDD_OK;
}

static crudd_status count(crudd_reader *reader, const crudd_count *request, uint64_t *count,
                          crudd_failure *failure) {
    (void)reader, (void)failure;
    if (request->filter.size > 0) return CRUDD_UNSUPPORTED;  // comes with CRUDD_CAN_QUERY
    const crudd_collection *collection = request->collection;
    size_t first = place(collection, request->prefix), end = first;
    while (end < collection->count && begins(collection->records[end].id, request->prefix)) end++;
    *count = end - first;
    return CRUDD_OK;
}

// Writing

static crudd_status put(crudd_collection *collection, const crudd_mutation *mutation, record *found) {
    crudd_bytes item, revision, id;
    if (!copy(mutation->item, &item)) return CRUDD_NO_SPACE;
    if (!copy(mutation->revision, &revision)) return release(item), CRUDD_NO_SPACE;
    if (found != NULL) {
        release(found->item);
        release(found->revision);
        found->item = item;
        found->revision = revision;
        return CRUDD_OK;
    }
    if (collection->count == collection->capacity) {
        size_t capacity = collection->capacity * 2 + 16;
        record *records = realloc(collection->records, capacity * sizeof *records);
        if (records == NULL) return release(item), release(revision), CRUDD_NO_SPACE;
        collection->records = records;
        collection->capacity = capacity;
    }
    if (!copy(mutation->id, &id)) return release(item), release(revision), CRUDD_NO_SPACE;
    size_t at = place(collection, id);
    memmove(&collection->records[at + 1], &collection->records[at], (collection->count++ - at) * sizeof(record));
    collection->records[at] = (record){id, item, revision};
    return CRUDD_OK;
}

static void drop(crudd_collection *collection, record *found) {
    release(found->id);
    release(found->item);
    release(found->revision);
    size_t at = (size_t)(found - collection->records);
    memmove(found, found + 1, (--collection->count - at) * sizeof(record));
}

static void apply(const crudd_mutation *mutation, crudd_outcome *outcome) {
    record *found = find(mutation->collection, mutation->id);
    int needs_record = mutation->kind == CRUDD_REMOVE || mutation->precondition == CRUDD_IF_PRESENT ||
                       mutation->precondition == CRUDD_IF_REVISION;
    if (found != NULL && mutation->precondition == CRUDD_IF_ABSENT) {
        outcome->status = CRUDD_EXISTS;
    } else if (found == NULL && needs_record) {
        outcome->status = CRUDD_NOT_FOUND;
    } else if (mutation->precondition == CRUDD_IF_REVISION && compare(found->revision, mutation->expected) != 0) {
        outcome->status = CRUDD_MISMATCH;
        outcome->revision_size = (uint32_t)found->revision.size;
        memcpy(outcome->revision, found->revision.data, found->revision.size);
    } else if (mutation->kind == CRUDD_REMOVE) {
        drop(mutation->collection, found);
    } else {
        outcome->status = put(mutation->collection, mutation, found);
        outcome->replaced = outcome->status == CRUDD_OK && found != NULL;
    }
}

static crudd_status write_batch(crudd_backend *backend, const crudd_write *request, crudd_failure *failure) {
    (void)backend, (void)failure;
    if (request->flags & CRUDD_WRITE_ATOMIC) return CRUDD_UNSUPPORTED;
    for (size_t index = 0; index < request->count; index++)
        apply(&request->mutations[index], &request->outcomes[index]);
    return CRUDD_OK;
}

const crudd_plugin *crudd_plugin_entry(void) {
    // No capabilities: the host makes one call at a time, so nothing here needs a lock.
    static const crudd_plugin plugin = {
        .struct_size = sizeof plugin,
        .abi_version = CRUDD_ABI_VERSION,
        .name = "example",
        .version = "1.0.0",
        .check_options = check_options,
        .open = open_backend,
        .close = close_backend,
        .open_collection = open_collection,
        .drop_collection = drop_collection,
        .list_collections = list_collections,
        .open_reader = open_reader,
        .close_reader = close_reader,
        .read = read_records,
        .scan = scan,
        .count = count,
        .write = write_batch,
    };
    return &plugin;
}
