// The records of scripted.c: a list of all collections' records, and the orders in which they are scanned.

#include <crudd_plugin.h>
#include <stdlib.h>
#include <string.h>

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

static int compare(crudd_bytes a, crudd_bytes b) {
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size ? memcmp(a.data, b.data, size) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int same(text text, crudd_bytes other) { return compare(bytes(text), other) == 0; }

enum { MAXIMUM_INDEXES = 8 };

typedef struct record {
    struct record *next;
    const crudd_collection *collection;
    text id, item, revision;
    int64_t expires_at;
    uint64_t sequence;
    text keys[MAXIMUM_INDEXES];  // one for each of the collection's slots
} record;

struct crudd_collection {
    crudd_collection *next;
    text name;
    text slots[MAXIMUM_INDEXES];  // the names of indexes, in the order in which they were first asked for
    size_t indexes[MAXIMUM_INDEXES], index_count;  // the slot of each index
};

static record **place(record **records, const crudd_collection *collection, crudd_bytes id) {
    while (*records && !((*records)->collection == collection && same((*records)->id, id))) records = &(*records)->next;
    return records;
}

static void drop(record *record) {
    free(record->id.data);
    free(record->item.data);
    free(record->revision.data);
    for (int slot = 0; slot < MAXIMUM_INDEXES; slot++) free(record->keys[slot].data);
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
        *one = *records;
        one->next = copy;
        one->id = copied(bytes(records->id));
        one->item = copied(bytes(records->item));
        one->revision = copied(bytes(records->revision));
        for (int slot = 0; slot < MAXIMUM_INDEXES; slot++) one->keys[slot] = copied(bytes(records->keys[slot]));
        copy = one;
    }
    return copy;
}

/// The keys of an index that is not named any more are removed, also where they are asked for again later.
static void set_indexes(crudd_collection *collection, const crudd_collection_spec *spec, record *records) {
    int is_used[MAXIMUM_INDEXES] = {0};
    for (size_t index = 0; index < spec->index_count; index++) {
        size_t slot = 0;
        while (collection->slots[slot].data && !same(collection->slots[slot], spec->indexes[index])) slot++;
        if (!collection->slots[slot].data) collection->slots[slot] = copied(spec->indexes[index]);
        collection->indexes[index] = slot;
        is_used[slot] = 1;
    }
    collection->index_count = spec->index_count;
    for (record *record = records; record; record = record->next) {
        for (int slot = 0; record->collection == collection && slot < MAXIMUM_INDEXES; slot++) {
            if (!is_used[slot]) record->keys[slot].size = 0;
        }
    }
}

static void set_keys(record *record, const crudd_mutation *mutation) {
    for (size_t index = 0; index < mutation->collection->index_count; index++) {
        text *key = &record->keys[mutation->collection->indexes[index]];
        free(key->data);
        *key = copied(index < mutation->record->key_count ? mutation->record->keys[index] : (crudd_bytes){NULL, 0});
    }
}

static int has_expired(const record *record, const crudd_call *call) {
    return record->expires_at && record->expires_at <= call->now;
}

// MARK: Orders

/// A record's place in the order of a range.
typedef struct position {
    uint64_t sequence;
    crudd_bytes key, id;
    const record *record;
} position;

static int compare_positions(const void *left, const void *right) {
    const position *a = left, *b = right;
    if (a->sequence != b->sequence) return a->sequence < b->sequence ? -1 : 1;
    int by_key = compare(a->key, b->key);
    return by_key ? by_key : compare(a->id, b->id);
}

static position position_of(const record *record, const crudd_range *range) {
    position position = {.id = bytes(record->id), .record = record};
    if (range->order == CRUDD_BY_SEQUENCE) position.sequence = record->sequence;
    if (range->order == CRUDD_BY_KEY) position.key = bytes(record->keys[record->collection->indexes[range->index]]);
    return position;
}

static int is_in_range(const position *position, const crudd_range *range) {
    int is_unkeyed = (range->flags & CRUDD_RANGE_UNKEYED) != 0;
    if (range->order == CRUDD_BY_SEQUENCE) {
        return position->sequence && position->sequence >= range->lower_sequence
            && (!range->upper_sequence || position->sequence < range->upper_sequence);
    }
    if (range->order == CRUDD_BY_KEY && (position->key.size == 0) != is_unkeyed) return 0;
    crudd_bytes value = range->order == CRUDD_BY_KEY && !is_unkeyed ? position->key : position->id;
    return compare(value, range->lower) >= 0 && (!range->upper.size || compare(value, range->upper) < 0);
}

// MARK: Calls

/// - Parameter size: of the struct that is emitted.
static int32_t emit_record(const record *from, size_t size, int without_item, crudd_emit emit, void *context,
                           size_t index) {
    // Behind the record lies what nobody may read, or what the host does not know.
    struct { crudd_record record; uint8_t behind[64]; } emitted;
    memset(&emitted, 0xA5, sizeof emitted);
    crudd_record record = {.struct_size = size, .id = bytes(from->id), .revision = bytes(from->revision),
                           .expires_at = from->expires_at, .sequence = from->sequence};
    if (!without_item) record.item = bytes(from->item);
    memcpy(&emitted.record, &record, size < sizeof record ? size : sizeof record);
    return emit(context, index, &emitted.record);
}

static void apply(record **records, const crudd_call *call, const crudd_mutation *mutation, crudd_outcome *outcome) {
    record **found = place(records, mutation->collection, mutation->record->id);
    int is_there = *found && !has_expired(*found, call);
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
    if (mutation->kind == CRUDD_SET_KEYS) {
        set_keys(*found, mutation);
        return;
    }
    outcome->replaced = is_there && mutation->kind == CRUDD_PUT;
    if (*found) {
        record *old = *found;
        *found = old->next;
        drop(old);
    }
    if (mutation->kind == CRUDD_REMOVE) return;
    record *new = calloc(1, sizeof *new);
    new->next = *records;
    new->collection = mutation->collection;
    new->id = copied(mutation->record->id);
    new->item = copied(mutation->record->item);
    new->revision = copied(mutation->record->revision);
    new->expires_at = mutation->record->expires_at;
    new->sequence = mutation->record->sequence;
    set_keys(new, mutation);
    *records = new;
}

static const crudd_mutation *mutation_at(const crudd_write *request, size_t index) {
    return (const crudd_mutation *)((const char *)request->mutations + index * request->mutation_size);
}

static crudd_outcome *outcome_at(const crudd_write *request, size_t index) {
    return (crudd_outcome *)((char *)request->outcomes + index * request->outcome_size);
}
