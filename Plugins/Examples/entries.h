// The sorted array in which memory.c keeps its records. An adapter for a database has an ordered table instead.

#ifndef ENTRIES_H
#define ENTRIES_H

#include <crudd_plugin.h>
#include <stdlib.h>
#include <string.h>

// Where an entry stands: sorted by order, then by key, then by id.
typedef struct position {
    uint64_t order;
    crudd_bytes key;
    crudd_bytes id;
} position;

typedef struct entry {
    position at;
    crudd_record *record;
} entry;

typedef struct entries {
    entry *all;
    size_t count, capacity;
} entries;

static const crudd_bytes empty = {NULL, 0};

static int compare(crudd_bytes a, crudd_bytes b) {
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_positions(position a, position b) {
    if (a.order != b.order) return a.order < b.order ? -1 : 1;
    int by_key = compare(a.key, b.key);
    return by_key != 0 ? by_key : compare(a.id, b.id);
}

// How many entries stand before a position.
static size_t rank(const entries *entries, position position) {
    size_t low = 0, high = entries->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_positions(entries->all[middle].at, position) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static int is_at(const entries *entries, size_t index, position position) {
    return index < entries->count && compare_positions(entries->all[index].at, position) == 0;
}

// Makes room, so that as many calls of `insert` cannot fail.
static int reserve(entries *entries, size_t additional) {
    if (entries->capacity - entries->count >= additional) return 1;
    size_t capacity = 2 * entries->count + additional;
    entry *all = realloc(entries->all, capacity * sizeof *all);
    if (all == NULL) return 0;
    entries->all = all;
    entries->capacity = capacity;
    return 1;
}

static void insert(entries *entries, uint64_t order, crudd_bytes key, crudd_record *record) {
    entry entry = {{order, key, record->id}, record};
    size_t at = rank(entries, entry.at);
    memmove(&entries->all[at + 1], &entries->all[at], (entries->count++ - at) * sizeof entry);
    entries->all[at] = entry;
}

// Removes the entries of one order, or, where `record` is not NULL, those of one record.
static void discard(entries *entries, uint64_t order, const crudd_record *record) {
    size_t kept = 0;
    for (size_t n = 0; n < entries->count; n++) {
        const entry *entry = &entries->all[n];
        if (record != NULL ? entry->record != record : entry->at.order != order) entries->all[kept++] = *entry;
    }
    entries->count = kept;
}

#endif
