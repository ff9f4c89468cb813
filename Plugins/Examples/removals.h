// What memory.c remembers of records that were removed, and how it removes those that have expired. A removal is a
// record with CRUDD_RECORD_REMOVED, whose `expires_at` is the time of the removal; its entries are in SEQUENCE_ORDER,
// where scans find it, and in REMOVAL_ORDER, which has nothing else.

#ifndef REMOVALS_H
#define REMOVALS_H

#include <sys/random.h>

// The first record of an order that has a key in it.
static crudd_record *first_keyed(const crudd_collection *collection, uint64_t order) {
    const crudd_bytes least_key = {(const uint8_t *)"", 1};
    size_t at = rank(&collection->entries, (position){order, least_key, empty});
    const entry *entry = &collection->entries.all[at];
    return at < collection->entries.count && entry->at.order == order ? entry->record : NULL;
}

static void free_record(crudd_collection *collection, crudd_record *record) {
    discard(&collection->entries, 0, record);
    free(record);
}

static int begin_history(crudd_collection *collection) {
    while (collection->identity == 0)
        if (getrandom(&collection->identity, sizeof collection->identity, 0) < 0) return 0;
    return 1;
}

static void forget_removals(crudd_collection *collection) {
    crudd_record *removal;
    while ((removal = first_keyed(collection, REMOVAL_ORDER)) != NULL) free_record(collection, removal);
    collection->identity = collection->forgotten = 0;
}

static crudd_status remove_record(crudd_collection *collection, crudd_record *record, uint64_t sequence, int64_t now) {
    if (collection->identity != 0 && sequence != 0) {
        uint8_t number[8];
        crudd_record *removal = malloc(sizeof *removal + record->id.size + sizeof number);
        if (removal == NULL || !reserve(&collection->entries, 2)) return free(removal), CRUDD_NO_SPACE;
        uint8_t *bytes = (uint8_t *)(removal + 1);
        *removal = (crudd_record){.struct_size = sizeof *removal, .flags = CRUDD_RECORD_REMOVED, .expires_at = now};
        removal->sequence = sequence;
        removal->id = append(&bytes, record->id);
        crudd_bytes key = append(&bytes, sortable(sequence, number));
        insert(&collection->entries, SEQUENCE_ORDER, key, removal);
        insert(&collection->entries, REMOVAL_ORDER, key, removal);
    }
    free_record(collection, record);
    return CRUDD_OK;
}

static crudd_status remove_expired(crudd_backend *backend, const crudd_call *call, const crudd_expire *request,
                                   int64_t *next_expiry, crudd_failure *failure) {
    crudd_collection *collection = request->collection;
    crudd_record *next = first_keyed(collection, EXPIRY_ORDER);
    for (size_t n = 0; n < request->limit && next != NULL && next->expires_at <= call->now; n++) {
        crudd_record removed = {.struct_size = sizeof removed, .flags = CRUDD_RECORD_REMOVED};
        removed.sequence = request->first_sequence + n;
        if (!copy(next->id, &removed.id)) break;
        if (remove_record(collection, next, removed.sequence, call->now) == CRUDD_OK)
            request->emit(request->context, n, &removed);
        release(removed.id);
        next = first_keyed(collection, EXPIRY_ORDER);
    }
    *next_expiry = next != NULL ? next->expires_at : 0;
    return CRUDD_OK;
}

static crudd_status trim_history(crudd_backend *backend, const crudd_call *call, const crudd_trim *request,
                                 crudd_history *history, crudd_failure *failure) {
    crudd_collection *collection = request->collection;
    if (collection->identity == 0) return CRUDD_UNSUPPORTED;
    crudd_record *removal;
    while (history->trimmed < request->limit && (removal = first_keyed(collection, REMOVAL_ORDER)) != NULL &&
           removal->expires_at < request->before) {
        collection->forgotten = removal->sequence;
        free_record(collection, removal);
        history->trimmed++;
    }
    history->identity = collection->identity;
    history->forgotten = collection->forgotten;
    return CRUDD_OK;
}

#endif
