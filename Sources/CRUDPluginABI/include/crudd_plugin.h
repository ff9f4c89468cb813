#ifndef CRUDD_PLUGIN_H
#define CRUDD_PLUGIN_H

// The contract between crudd and a storage plugin, version 1. README.md beside this file explains it; this header is
// the letter.
//
// A plugin is a shared object that exports one function, `crudd_plugin_entry`. It stores bytes: the host turns items
// into bytes, checks identifiers and access, makes revisions, and hands over whatever has queued up as one batch.
//
// Only bytes, lengths, integers and function pointers cross. Every struct that may grow starts with its own size;
// fields are only ever appended, and a side that finds `struct_size` too small for a field treats it as zero.
// Memory that a call hands over belongs to the caller and is valid until the call returns, in both directions.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CRUDD_ABI_VERSION 1u

/// Bytes that are not terminated. `data` may be NULL where `size` is 0.
typedef struct crudd_bytes {
    const uint8_t *data;
    size_t size;
} crudd_bytes;

// MARK: Outcomes

/// What a call, or one mutation of a batch, came to.
typedef int32_t crudd_status;
enum {
    CRUDD_OK = 0,
    CRUDD_NOT_FOUND = 1,        ///< no such record, no such collection
    CRUDD_EXISTS = 2,           ///< precondition CRUDD_IF_ABSENT failed
    CRUDD_MISMATCH = 3,         ///< precondition CRUDD_IF_REVISION failed
    CRUDD_UNAVAILABLE = 4,      ///< not now, nothing was applied: busy, locked, read-only, unreachable
    CRUDD_OUTCOME_UNKNOWN = 5,  ///< a write may or may not have been applied
    CRUDD_NO_SPACE = 6,         ///< storage is full, nothing was applied
    CRUDD_CORRUPT = 7,          ///< stored bytes cannot be understood
    CRUDD_UNSUPPORTED = 8,      ///< the plugin does not do this
    CRUDD_INVALID_OPTIONS = 9,  ///< of check_options and open: can never work; failure.pointer names the option
    CRUDD_INTERNAL = 10,        ///< anything else; logged by the host, never shown to a peer
};

/// Where a call says why it did not answer CRUDD_OK. The host owns it and has zeroed it; texts are UTF-8 and
/// terminated, and say nothing of a record's content.
typedef struct crudd_failure {
    uint32_t struct_size;
    char message[512];
    char pointer[256];  ///< a JSON pointer (RFC 6901) into the options, or empty
} crudd_failure;

// MARK: Capabilities

/// What a plugin can do beyond the calls that every plugin has. What is not declared is never called.
enum {
    /// Readers are independent: calls on different readers, and calls on the backend itself, may run at the same
    /// time on different threads. Undeclared: the host makes one call at a time.
    CRUDD_CAN_READ_CONCURRENTLY = 1u << 0,
    /// `read` of a few ids takes microseconds, so that the host may call it on its event loop. Needs the one above.
    CRUDD_CAN_READ_FAST = 1u << 1,
    /// CRUDD_WRITE_ATOMIC is understood, over several collections too.
    CRUDD_HAS_TRANSACTIONS = 1u << 2,
    /// A write that was answered survives power loss.
    CRUDD_IS_DURABLE = 1u << 3,
    /// `query` and the filter of `count` are there, for the filters and sorts that the plugin does not refuse.
    CRUDD_CAN_QUERY = 1u << 4,
};

// MARK: The host, as a plugin sees it

typedef enum crudd_log_level { CRUDD_LOG_DEBUG, CRUDD_LOG_INFO, CRUDD_LOG_WARNING, CRUDD_LOG_ERROR } crudd_log_level;

/// Lives as long as the backend. Its functions may be called from any thread.
typedef struct crudd_host {
    uint32_t struct_size;
    void *context;
    /// A line for the administrator; never the content of a record.
    void (*log)(void *context, crudd_log_level level, crudd_bytes message);
} crudd_host;

/// Things that a plugin makes and the host hands back. The host never looks inside.
typedef struct crudd_backend crudd_backend;
typedef struct crudd_collection crudd_collection;
typedef struct crudd_reader crudd_reader;

// MARK: Collections

enum { CRUDD_OPEN_CREATE = 1u << 0 };

/// How a collection is to be opened.
typedef struct crudd_collection_spec {
    uint32_t struct_size;
    uint32_t flags;            ///< CRUDD_OPEN_CREATE: make it if it is not there. Otherwise CRUDD_NOT_FOUND.
    crudd_bytes name;          ///< 1 to 128 bytes of UTF-8 without control characters; anything else is legal
    /// "json", "xml" or "plist": what the items are, for a file's extension and the like. The same name with another
    /// format is another collection.
    crudd_bytes format;
    const crudd_bytes *indexes;  ///< property paths worth an index; a plugin without indexes ignores them
    size_t index_count;
} crudd_collection_spec;

// MARK: Reading

enum { CRUDD_READ_WITHOUT_ITEMS = 1u << 0 };

/// Receives one record. `index` is the position of its id in the request (`read`) or counts from 0 (`scan`).
/// Answers 0 to go on; anything else makes the plugin stop and answer CRUDD_OK.
typedef int32_t (*crudd_emit)(void *context, size_t index, crudd_bytes id, crudd_bytes item, crudd_bytes revision);

/// Looks ids up. Each record that is there is emitted once for each position that asks for it; one that is not is
/// left out. With CRUDD_READ_WITHOUT_ITEMS `item` is empty.
typedef struct crudd_read {
    uint32_t struct_size;
    uint32_t flags;
    const crudd_collection *collection;
    const crudd_bytes *ids;
    size_t count;
    crudd_emit emit;
    void *context;
} crudd_read;

/// Walks records by id, ascending by byte.
typedef struct crudd_scan {
    uint32_t struct_size;
    uint32_t flags;  ///< CRUDD_READ_WITHOUT_ITEMS
    const crudd_collection *collection;
    crudd_bytes after;   ///< only ids greater than this; empty: from the start
    crudd_bytes prefix;  ///< only ids that begin with this; empty: all
    size_t limit;        ///< at most so many; 0: no limit
    crudd_emit emit;
    void *context;
} crudd_scan;

/// Asked now and then by a query that takes long, every millisecond or so. 0: go on. Anything else: nobody waits for
/// the result any more; the plugin stops and answers CRUDD_UNAVAILABLE.
typedef int32_t (*crudd_interrupt)(void *context);

/// Counts records. With a filter: like `query`, and only where CRUDD_CAN_QUERY is declared.
typedef struct crudd_count {
    uint32_t struct_size;
    uint32_t flags;
    const crudd_collection *collection;
    crudd_bytes prefix;         ///< only ids that begin with this; empty: all
    crudd_bytes filter;         ///< only records for which this is true, in CQL2 JSON; empty: all
    crudd_interrupt interrupt;  ///< may be NULL
    void *context;              ///< of `interrupt`
} crudd_count;

/// How a query was carried out. The host has zeroed it.
typedef struct crudd_plan {
    uint32_t struct_size;
    char index[256];   ///< UTF-8, terminated: the property path whose index served; empty: none did
    uint64_t scanned;  ///< how many records were looked at
} crudd_plan;

/// Finds records by what is in them. What it emits is exactly what the protocol's rules for filters and sorts say, in
/// that order; a filter or a sort of which the plugin is not sure is refused with CRUDD_UNSUPPORTED before anything is
/// emitted, and the host scans and evaluates itself.
typedef struct crudd_query {
    uint32_t struct_size;
    uint32_t flags;  ///< CRUDD_READ_WITHOUT_ITEMS
    const crudd_collection *collection;
    crudd_bytes filter;  ///< only records for which this is true, in CQL2 JSON; empty: all
    crudd_bytes prefix;  ///< only ids that begin with this; empty: all
    crudd_bytes sort;    ///< [{"property":"a.b","order":"asc"|"desc"},…]; ties by id, ascending; empty: by id alone
    crudd_bytes after;   ///< {"values":[…],"id":"…"}: only records behind this place in the order; empty: from the start
    size_t limit;        ///< at most so many; never 0
    crudd_emit emit;     ///< `index` counts from 0
    void *context;       ///< of `emit` and `interrupt`
    crudd_plan *plan;    ///< NULL unless the host wants to know
    crudd_interrupt interrupt;  ///< may be NULL
} crudd_query;

// MARK: Writing

enum {
    CRUDD_PUT = 0,
    CRUDD_REMOVE = 1,
    CRUDD_CHECK = 2,  ///< changes nothing, its precondition is what counts; only with CRUDD_WRITE_ATOMIC
};
enum { CRUDD_IF_ANY = 0, CRUDD_IF_ABSENT = 1, CRUDD_IF_PRESENT = 2, CRUDD_IF_REVISION = 3 };

/// One change of one record.
typedef struct crudd_mutation {
    crudd_collection *collection;
    uint32_t kind;          ///< CRUDD_PUT, CRUDD_REMOVE or CRUDD_CHECK
    uint32_t precondition;  ///< CRUDD_IF_…; a failed one is this mutation's outcome and touches nothing
    crudd_bytes id;         ///< 1 to 512 bytes of UTF-8 without control characters; anything else is legal
    crudd_bytes item;       ///< CRUDD_PUT: what to store
    crudd_bytes revision;   ///< CRUDD_PUT: what to store beside it, at most 64 bytes of ASCII
    crudd_bytes expected;   ///< CRUDD_IF_REVISION: the revision that must be there
} crudd_mutation;

/// What one mutation came to.
///
/// CRUDD_OK; CRUDD_EXISTS (IF_ABSENT and there is a record); CRUDD_NOT_FOUND (IF_PRESENT and there is none, IF_REVISION
/// and there is none, CRUDD_REMOVE and there is none); CRUDD_MISMATCH (another revision is there, see `revision`);
/// CRUDD_NO_SPACE, CRUDD_CORRUPT, CRUDD_UNSUPPORTED, CRUDD_UNAVAILABLE, CRUDD_OUTCOME_UNKNOWN or CRUDD_INTERNAL where
/// this one alone failed.
typedef struct crudd_outcome {
    crudd_status status;
    uint32_t replaced;       ///< CRUDD_PUT that took effect: 1 if a record was there before, else 0
    uint32_t revision_size;  ///< CRUDD_MISMATCH: how long `revision` is
    uint8_t revision[64];    ///< CRUDD_MISMATCH: the revision that is there
} crudd_outcome;

enum { CRUDD_WRITE_ATOMIC = 1u << 0 };

/// Mutations that take effect in order, each seeing those before it. A plugin with transactions puts all of them into
/// one; either way, CRUDD_OK is answered only when every mutation whose outcome is CRUDD_OK is as durable as the plugin
/// promises. Any other status means that no mutation was applied (CRUDD_OUTCOME_UNKNOWN: that some may have been).
///
/// With CRUDD_WRITE_ATOMIC the first outcome that is not CRUDD_OK undoes all: the call still answers CRUDD_OK, that
/// outcome stands at its place, and nothing was applied.
typedef struct crudd_write {
    uint32_t struct_size;
    uint32_t flags;
    const crudd_mutation *mutations;
    crudd_outcome *outcomes;  ///< as many as mutations, zeroed by the host
    size_t count;
} crudd_write;

// MARK: The plugin

/// Receives a name.
typedef void (*crudd_emit_name)(void *context, crudd_bytes name);

/// The function table. All functions but those marked optional must be there. The host calls `check_options` from any
/// thread; per backend it makes one call at a time, except as CRUDD_CAN_READ_CONCURRENTLY says. Calls may block.
typedef struct crudd_plugin {
    uint32_t struct_size;
    uint32_t abi_version;   ///< CRUDD_ABI_VERSION
    const char *name;       ///< for people
    const char *version;    ///< of the plugin, for people
    uint64_t capabilities;  ///< CRUDD_CAN_…, CRUDD_HAS_…, CRUDD_IS_…

    /// Checks options (a JSON object) without touching storage.
    crudd_status (*check_options)(crudd_bytes options, crudd_failure *failure);
    /// Opens storage. CRUDD_INVALID_OPTIONS and CRUDD_UNSUPPORTED are final; after any other failure the host
    /// tries again later.
    crudd_status (*open)(crudd_bytes options, const crudd_host *host, crudd_backend **backend, crudd_failure *failure);
    /// Closes it. All readers are closed by then; collections end with their backend.
    void (*close)(crudd_backend *backend);

    /// Opens a collection. A second time with other indexes brings them up to date; the collection stays the same.
    crudd_status (*open_collection)(crudd_backend *backend, const crudd_collection_spec *spec,
                                    crudd_collection **collection, crudd_failure *failure);
    /// Removes a collection with its records. The host does not use an open one any more.
    crudd_status (*drop_collection)(crudd_backend *backend, crudd_bytes name, crudd_failure *failure);
    /// Names every collection that is there.
    crudd_status (*list_collections)(crudd_backend *backend, crudd_emit_name emit, void *context,
                                     crudd_failure *failure);

    /// Makes a reader; one call at a time on each. A plugin that declares CRUDD_CAN_READ_CONCURRENTLY may be asked for
    /// several at once, beside the backend's other calls, and to close them likewise.
    crudd_status (*open_reader)(crudd_backend *backend, crudd_reader **reader, crudd_failure *failure);
    void (*close_reader)(crudd_reader *reader);
    /// Optional. Lets go of whatever view of the data the reader holds. A reader may go on showing the state of the
    /// first call after the last `end_snapshot`; the host calls this before a read that has to see a later write, and
    /// within 100 ms of the last read.
    void (*end_snapshot)(crudd_reader *reader);

    crudd_status (*read)(crudd_reader *reader, const crudd_read *request, crudd_failure *failure);
    crudd_status (*scan)(crudd_reader *reader, const crudd_scan *request, crudd_failure *failure);
    crudd_status (*count)(crudd_reader *reader, const crudd_count *request, uint64_t *count, crudd_failure *failure);

    crudd_status (*write)(crudd_backend *backend, const crudd_write *request, crudd_failure *failure);

    /// Optional. Work for a quiet moment (a checkpoint, a clean-up); called between writes when nothing is queued.
    void (*idle)(crudd_backend *backend);
    /// Optional. What this backend can do of the `capabilities` above, as options may take something away (durability,
    /// say). Missing: all of it.
    uint64_t (*backend_capabilities)(crudd_backend *backend);

    /// Only where CRUDD_CAN_QUERY is declared, else NULL.
    crudd_status (*query)(crudd_reader *reader, const crudd_query *request, crudd_failure *failure);
} crudd_plugin;

/// The one symbol that a plugin exports. What it answers lives as long as the process.
const crudd_plugin *crudd_plugin_entry(void);

#ifdef __cplusplus
}
#endif

#endif
