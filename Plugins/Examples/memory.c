// A storage plugin for crudd in C, against crudd_plugin.h alone: records in memory, with indexes, sequence numbers,
// removals and expiry, gone when the process ends.
//
//     cc -std=c11 -shared -fPIC -I /usr/include -o example.so memory.c
//
// The contract is in Sources/CRUDPluginABI/README.md.
//
// A collection is one sorted array of entries, in which each record stands once for each order: by id, by sequence
// number, by expiry and by each index. An entry is sorted by its order, then by the record's key in that order, then by
// id. In ID_ORDER the key is the id, in SEQUENCE_ORDER and EXPIRY_ORDER the number in eight bytes. A record without a
// key has the empty one, so that the unkeyed records are the first entries of an index. removals.h has what was
// removed.

#include "entries.h"

// Hardly a function needs all of its parameters.
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { ID_ORDER, SEQUENCE_ORDER, EXPIRY_ORDER, REMOVAL_ORDER, FIRST_INDEX_ORDER };

typedef struct key_index {
    crudd_bytes name;
    uint64_t order;  // of its entries; never that of another index, whatever the positions are
} key_index;

struct crudd_collection {
    crudd_collection *next;
    crudd_bytes name, format;
    entries entries;
    key_index *indexes;
    size_t index_count;
    uint64_t next_order;
    uint64_t identity;   // 0: it does not remember what is removed
    uint64_t forgotten;
};

struct crudd_backend {
    crudd_collection *collections;
};

// MARK: Bytes

static int copy(crudd_bytes from, crudd_bytes *to) {
    uint8_t *data = malloc(from.size + 1);
    if (data == NULL) return 0;
    if (from.size > 0) memcpy(data, from.data, from.size);
    *to = (crudd_bytes){data, from.size};
    return 1;
}

static void release(crudd_bytes bytes) { free((void *)bytes.data); }

// A number as bytes that sort like it; none for 0, so that records without a number have no key in SEQUENCE_ORDER.
static crudd_bytes sortable(uint64_t number, uint8_t bytes[8]) {
    for (int n = 0; n < 8; n++) bytes[n] = (uint8_t)(number >> (56 - 8 * n));
    return number > 0 ? (crudd_bytes){bytes, 8} : empty;
}

static crudd_record *find(const crudd_collection *collection, crudd_bytes id) {
    position position = {ID_ORDER, id, id};
    size_t at = rank(&collection->entries, position);
    return is_at(&collection->entries, at, position) ? collection->entries.all[at].record : NULL;
}

// Each record has one entry in ID_ORDER, which comes first.
static size_t record_count(const crudd_collection *collection) {
    return rank(&collection->entries, (position){SEQUENCE_ORDER, empty, empty});
}

static crudd_bytes append(uint8_t **end, crudd_bytes bytes) {
    crudd_bytes appended = {*end, bytes.size};
    if (bytes.size > 0) memcpy(*end, bytes.data, bytes.size);
    *end += bytes.size;
    return appended;
}

#include "removals.h"

// MARK: Storage

static crudd_status check_options(crudd_bytes options, crudd_failure *failure) {
    if (options.size == 0 || (options.size == 2 && memcmp(options.data, "{}", 2) == 0)) return CRUDD_OK;
    strcpy(failure->message, "this plugin has no options");
    return CRUDD_INVALID_OPTIONS;
}

static crudd_status open_backend(crudd_bytes options, const crudd_host *host, const crudd_call *call,
                                 crudd_backend **backend, crudd_opened *opened, crudd_failure *failure) {
    crudd_status status = check_options(options, failure);
    if (status != CRUDD_OK) return status;
    // No record was stored here before, so that the highest sequence number is the 0 that stands in `opened`.
    *backend = calloc(1, sizeof **backend);
    return *backend != NULL ? CRUDD_OK : CRUDD_UNAVAILABLE;
}

static void free_indexes(key_index *indexes, size_t count) {
    while (count-- > 0) release(indexes[count].name);
    free(indexes);
}

static void free_collection(crudd_collection *collection) {
    size_t records = record_count(collection);
    forget_removals(collection);
    for (size_t n = 0; n < records; n++) free(collection->entries.all[n].record);
    free(collection->entries.all);
    free_indexes(collection->indexes, collection->index_count);
    release(collection->name);
    release(collection->format);
    free(collection);
}

// Frees the collections of a name, or all of them.
static size_t free_collections(crudd_backend *backend, const crudd_bytes *name) {
    size_t freed = 0;
    for (crudd_collection **link = &backend->collections; *link != NULL;) {
        crudd_collection *collection = *link;
        if (name != NULL && compare(collection->name, *name) != 0) {
            link = &collection->next;
            continue;
        }
        *link = collection->next;
        free_collection(collection);
        freed++;
    }
    return freed;
}

static void close_backend(crudd_backend *backend) {
    free_collections(backend, NULL);
    free(backend);
}

// MARK: Collections

// Keeps the indexes that are still named, drops the others, and adds the new ones, in which all records are unkeyed.
static crudd_status set_indexes(crudd_collection *collection, const crudd_collection_spec *spec) {
    size_t count = 0, added = 0, records = record_count(collection);
    key_index *indexes = malloc((spec->index_count + 1) * sizeof *indexes);
    if (indexes == NULL) return CRUDD_NO_SPACE;
    for (; count < spec->index_count; count++) {
        if (!copy(spec->indexes[count], &indexes[count].name)) break;
        indexes[count].order = 0;
        for (size_t n = 0; n < collection->index_count; n++)
            if (compare(collection->indexes[n].name, indexes[count].name) == 0)
                indexes[count].order = collection->indexes[n].order;
        if (indexes[count].order == 0) indexes[count].order = collection->next_order + added++;
    }
    if (count < spec->index_count || !reserve(&collection->entries, added * records))
        return free_indexes(indexes, count), CRUDD_NO_SPACE;
    for (size_t n = 0; n < collection->index_count; n++) {
        size_t kept = 0;
        while (kept < count && indexes[kept].order != collection->indexes[n].order) kept++;
        if (kept == count) discard(&collection->entries, collection->indexes[n].order, NULL);
    }
    for (; added > 0; added--, collection->next_order++)
        for (size_t n = 0; n < records; n++)
            insert(&collection->entries, collection->next_order, empty, collection->entries.all[n].record);
    free_indexes(collection->indexes, collection->index_count);
    collection->indexes = indexes;
    collection->index_count = count;
    return CRUDD_OK;
}

static crudd_status open_collection(crudd_backend *backend, const crudd_call *call, const crudd_collection_spec *spec,
                                    crudd_collection **collection, crudd_failure *failure) {
    crudd_collection *found = backend->collections;
    while (found != NULL && (compare(found->name, spec->name) != 0 || compare(found->format, spec->format) != 0))
        found = found->next;
    if (found == NULL) {
        if (!(spec->flags & CRUDD_OPEN_CREATE)) return CRUDD_NOT_FOUND;
        found = calloc(1, sizeof *found);
        if (found == NULL) return CRUDD_NO_SPACE;
        if (!copy(spec->name, &found->name) || !copy(spec->format, &found->format))
            return free_collection(found), CRUDD_NO_SPACE;
        found->next_order = FIRST_INDEX_ORDER;
        found->next = backend->collections;
        backend->collections = found;
    }
    *collection = found;
    if (spec->flags & CRUDD_OPEN_AS_IT_IS) return CRUDD_OK;
    if (!(spec->flags & CRUDD_OPEN_SEQUENCES)) forget_removals(found);
    else if (!begin_history(found)) return CRUDD_UNAVAILABLE;
    return set_indexes(found, spec);
}

static crudd_status drop_collection(crudd_backend *backend, const crudd_call *call, crudd_bytes name,
                                    crudd_failure *failure) {
    return free_collections(backend, &name) > 0 ? CRUDD_OK : CRUDD_NOT_FOUND;
}

static crudd_status list_collections(crudd_backend *backend, const crudd_call *call, crudd_emit_name emit,
                                     void *context, crudd_failure *failure) {
    for (crudd_collection *each = backend->collections; each != NULL; each = each->next) {
        // A name is emitted once, with the last of its formats.
        crudd_collection *other = each->next;
        while (other != NULL && compare(other->name, each->name) != 0) other = other->next;
        if (other == NULL) emit(context, each->name);
    }
    return CRUDD_OK;
}

// MARK: Reading

// A reader has no state of its own, so that the backend does for it.
static crudd_status open_reader(crudd_backend *backend, crudd_reader **reader, crudd_failure *failure) {
    *reader = (crudd_reader *)backend;
    return CRUDD_OK;
}

static void close_reader(crudd_reader *reader) {}

static int has_expired(const crudd_record *record, const crudd_call *call) {
    return record->expires_at != 0 && record->expires_at <= call->now;
}

static crudd_status read_records(crudd_reader *reader, const crudd_call *call, const crudd_read *request,
                                 crudd_failure *failure) {
    for (size_t n = 0; n < request->count; n++) {
        const crudd_record *found = find(request->collection, request->ids[n]);
        if (found == NULL || has_expired(found, call)) continue;
        crudd_record record = *found;
        if (request->flags & CRUDD_READ_WITHOUT_ITEMS) record.item = empty;
        if (request->emit(request->context, n, &record) != 0) break;
    }
    return CRUDD_OK;
}

// Finds the entries of a range: from `first` up to but not including `end`.
static crudd_status find_range(const crudd_collection *collection, const crudd_range *range, uint64_t *order,
                               size_t *first, size_t *end) {
    uint8_t lower_number[8], upper_number[8];
    position lower = {0, range->lower, empty}, upper = {0, range->upper, empty};
    if (range->order == CRUDD_BY_SEQUENCE && (range->flags & CRUDD_RANGE_UNSEQUENCED)) {
        lower.order = upper.order = SEQUENCE_ORDER;
    } else if (range->order == CRUDD_BY_SEQUENCE) {
        lower = (position){SEQUENCE_ORDER, sortable(range->lower_sequence, lower_number), empty};
        upper = (position){SEQUENCE_ORDER, sortable(range->upper_sequence, upper_number), empty};
    } else if (range->order == CRUDD_BY_KEY && range->index < collection->index_count) {
        lower.order = upper.order = collection->indexes[range->index].order;
    } else if (range->order != CRUDD_BY_ID) {
        return CRUDD_UNSUPPORTED;
    }
    const crudd_bytes least_key = {(const uint8_t *)"", 1};  // One zero byte: only the empty key comes before it.
    if (range->flags & (CRUDD_RANGE_UNKEYED | CRUDD_RANGE_UNSEQUENCED)) {
        lower = (position){lower.order, empty, range->lower};
        upper = (position){lower.order, range->upper.size > 0 ? empty : least_key, range->upper};
    } else {
        if (lower.key.size == 0) lower.key = least_key;
        if (upper.key.size == 0) upper.order++;
    }
    *order = lower.order;
    *first = rank(&collection->entries, lower);
    *end = rank(&collection->entries, upper);
    return CRUDD_OK;
}

static int32_t count_record(void *context, size_t index, const crudd_record *record) {
    ++*(uint64_t *)context;
    return 0;
}

static crudd_status scan(crudd_reader *reader, const crudd_call *call, const crudd_scan *request,
                         crudd_failure *failure) {
    const entries *entries = &request->collection->entries;
    uint64_t order;
    size_t first, end, visited = 0, emitted = 0;
    crudd_status status = find_range(request->collection, request->range, &order, &first, &end);
    if (status != CRUDD_OK) return status;
    int is_reverse = (request->flags & CRUDD_SCAN_REVERSE) != 0;
    if (request->after_id.size > 0) {
        crudd_bytes key = order == ID_ORDER ? request->after_id : order == SEQUENCE_ORDER ? empty : request->after_key;
        position after = {order, key, request->after_id};
        size_t at = rank(entries, after);
        if (is_reverse && at < end) end = at;
        // Forwards, the record itself is passed over if it is still there.
        if (!is_reverse && is_at(entries, at, after)) at++;
        if (!is_reverse && at > first) first = at;
    }
    while (first < end && (request->limit == 0 || emitted < request->limit)) {
        crudd_record record = *entries->all[is_reverse ? --end : first++].record;
        if (++visited % 1024 == 0 && call->interrupted != NULL && call->interrupted(call->context) != 0)
            return CRUDD_INTERRUPTED;
        // Of a removal `expires_at` is something else, and it is not counted.
        if (record.flags & CRUDD_RECORD_REMOVED ? request->emit == count_record : has_expired(&record, call)) continue;
        if (request->flags & CRUDD_SCAN_WITHOUT_ITEMS) record.item = empty;
        if (request->emit(request->context, emitted++, &record) != 0) break;
    }
    return CRUDD_OK;
}

static crudd_status count(crudd_reader *reader, const crudd_call *call, const crudd_count *request, uint64_t *count,
                          crudd_failure *failure) {
    const crudd_scan counting = {.collection = request->collection, .range = request->range, .limit = request->limit,
                                 .emit = count_record, .context = count};
    *count = 0;
    return scan(reader, call, &counting, failure);
}

// MARK: Writing

// Stores a copy of a record, with its keys in the same block of memory, in the place of the one that is there.
static crudd_status store(crudd_collection *collection, const crudd_record *from, const crudd_bytes *keys,
                          crudd_record *replaced) {
    uint8_t number[8], time[8];
    crudd_bytes sequence = sortable(from->sequence, number), expiry = sortable((uint64_t)from->expires_at, time);
    size_t size = sizeof(crudd_record) + from->id.size + from->item.size + from->revision.size + sequence.size +
                  expiry.size;
    for (size_t n = 0; n < collection->index_count; n++) size += keys[n].size;
    crudd_record *record = malloc(size);
    if (record == NULL || !reserve(&collection->entries, FIRST_INDEX_ORDER + collection->index_count))
        return free(record), CRUDD_NO_SPACE;
    uint8_t *bytes = (uint8_t *)(record + 1);
    *record = (crudd_record){.struct_size = sizeof *record, .expires_at = from->expires_at, .sequence = from->sequence};
    record->id = append(&bytes, from->id);
    record->item = append(&bytes, from->item);
    record->revision = append(&bytes, from->revision);
    if (replaced != NULL) discard(&collection->entries, 0, replaced);
    insert(&collection->entries, ID_ORDER, record->id, record);
    insert(&collection->entries, SEQUENCE_ORDER, append(&bytes, sequence), record);
    insert(&collection->entries, EXPIRY_ORDER, append(&bytes, expiry), record);
    for (size_t n = 0; n < collection->index_count; n++)
        insert(&collection->entries, collection->indexes[n].order, append(&bytes, keys[n]), record);
    free(replaced);
    return CRUDD_OK;
}

static void apply(const crudd_mutation *mutation, const crudd_call *call, crudd_outcome *outcome) {
    const crudd_record *record = mutation->record;
    crudd_record *stored = find(mutation->collection, record->id);
    crudd_record *found = stored != NULL && !has_expired(stored, call) ? stored : NULL;
    int needs_record = mutation->kind == CRUDD_REMOVE || mutation->precondition == CRUDD_IF_PRESENT ||
                       mutation->precondition == CRUDD_IF_REVISION;
    // Checks come in atomic batches only, which this plugin does not have.
    int is_defined = mutation->kind == CRUDD_PUT || mutation->kind == CRUDD_REMOVE ||
                     (mutation->kind == CRUDD_SET_KEYS && mutation->precondition == CRUDD_IF_REVISION);
    if (!is_defined || mutation->precondition > CRUDD_IF_REVISION) {
        outcome->status = CRUDD_UNSUPPORTED;
    } else if (found != NULL && mutation->precondition == CRUDD_IF_ABSENT) {
        outcome->status = CRUDD_EXISTS;
    } else if (found == NULL && needs_record) {
        outcome->status = CRUDD_NOT_FOUND;
    } else if (mutation->precondition == CRUDD_IF_REVISION && compare(found->revision, mutation->expected) != 0) {
        outcome->status = CRUDD_MISMATCH;
        outcome->revision_size = (uint32_t)found->revision.size;
        memcpy(outcome->revision, found->revision.data, found->revision.size);
    } else if (mutation->kind == CRUDD_REMOVE) {
        outcome->status = remove_record(mutation->collection, found, record->sequence, call->now);
    } else if (mutation->kind == CRUDD_PUT) {
        outcome->status = store(mutation->collection, record, record->keys, stored);
        outcome->replaced = outcome->status == CRUDD_OK && found != NULL;
    } else {
        outcome->status = store(mutation->collection, found, record->keys, found);
    }
}

static crudd_status write_batch(crudd_backend *backend, const crudd_call *call, const crudd_write *request,
                                crudd_failure *failure) {
    if (request->flags & CRUDD_WRITE_ATOMIC) return CRUDD_UNSUPPORTED;
    // The host's structs may be longer than those that this plugin knows.
    const char *mutation = (const char *)request->mutations;
    char *outcome = (char *)request->outcomes;
    for (size_t n = 0; n < request->count; n++) {
        apply((const crudd_mutation *)mutation, call, (crudd_outcome *)outcome);
        mutation += request->mutation_size;
        outcome += request->outcome_size;
    }
    return CRUDD_OK;
}

const crudd_plugin *crudd_plugin_entry(void) {
    // Without CRUDD_CAN_READ_CONCURRENTLY the host makes one call at a time, so that nothing here needs a lock.
    static const crudd_plugin plugin = {
        .struct_size = sizeof plugin,
        .abi_version = CRUDD_ABI_VERSION,
        .name = "example",
        .version = "2.0.0",
        .capabilities = CRUDD_HAS_INDEXES | CRUDD_HAS_SEQUENCES | CRUDD_HAS_EXPIRY,
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
        .remove_expired = remove_expired,
        .trim_history = trim_history,
    };
    return &plugin;
}
