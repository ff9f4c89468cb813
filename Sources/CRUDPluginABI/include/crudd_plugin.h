#ifndef CRUDD_PLUGIN_H
#define CRUDD_PLUGIN_H

// The contract between crudd and a storage plugin, version 2. README.md beside this file explains it; where the two
// differ, this header is right.
//
// A plugin is a shared object that exports one function, `crudd_plugin_entry`. It is an ordered store of bytes: the
// host turns items into bytes, makes revisions, sequence numbers and index keys, checks identifiers and access,
// evaluates filters and sorts, and hands over whatever has queued up as one batch.
//
// Growth. Only bytes, lengths, integers and function pointers cross. Every struct begins with its own size as the side
// that made it knows it; an array comes with the size of an element, and no struct holds another by value. Fields are
// only ever appended. A reader copies what both sides know and takes the rest as zero. That holds for the function
// table too: a table that is shorter than the host's lacks optional functions, nothing else. `crudd_bytes` never grows.
//
// Memory that a call hands over belongs to the caller and is valid until the call returns, in both directions.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CRUDD_ABI_VERSION 2u

/// Bytes that are not terminated. `data` may be NULL where `size` is 0.
typedef struct crudd_bytes {
    const uint8_t *data;
    size_t size;
} crudd_bytes;

// MARK: Outcomes

/// The outcome of a call, or of one mutation of a batch.
typedef int32_t crudd_status;
enum {
    CRUDD_OK = 0,
    CRUDD_NOT_FOUND = 1,        ///< no such record, no such collection
    CRUDD_EXISTS = 2,           ///< precondition CRUDD_IF_ABSENT failed
    CRUDD_MISMATCH = 3,         ///< precondition CRUDD_IF_REVISION failed
    CRUDD_UNAVAILABLE = 4,      ///< not now, nothing was applied: busy, locked, read-only, unreachable
    CRUDD_OUTCOME_UNKNOWN = 5,  ///< a write may or may not have been applied
    CRUDD_NO_SPACE = 6,         ///< storage is full, nothing was applied
    CRUDD_CORRUPT = 7,          ///< stored bytes cannot be decoded
    CRUDD_UNSUPPORTED = 8,      ///< the plugin lacks this capability
    CRUDD_INVALID_OPTIONS = 9,  ///< of check_options and open: can never work; failure.pointer names the option
    CRUDD_INTERNAL = 10,        ///< anything else; logged by the host, never shown to a client
    CRUDD_INTERRUPTED = 11,     ///< crudd_call.interrupted returned non-zero; nothing was applied
};

/// Where a call says why it did not return CRUDD_OK. The host owns it and has zeroed it; texts are UTF-8 and
/// terminated, and say nothing of a record's content.
typedef struct crudd_failure {
    uint32_t struct_size;
    char message[512];
    char pointer[256];  ///< a JSON pointer (RFC 6901) into the options, or empty
} crudd_failure;

// MARK: Capabilities

/// What a plugin can do beyond the calls that every plugin has. What is not declared is never asked for.
enum {
    /// Readers are independent: calls on different readers, and calls on the backend itself, may run at the same
    /// time on different threads. Undeclared: the host makes one call at a time.
    CRUDD_CAN_READ_CONCURRENTLY = 1u << 0,
    /// `read` of a few ids takes microseconds, so that the host may call it on its event loop. Needs the one above.
    CRUDD_CAN_READ_FAST = 1u << 1,
    /// CRUDD_WRITE_ATOMIC is supported, over several collections too.
    CRUDD_HAS_TRANSACTIONS = 1u << 2,
    /// A write that was acknowledged survives power loss.
    CRUDD_IS_DURABLE = 1u << 3,
    /// Index keys are stored and kept in order: CRUDD_BY_KEY, CRUDD_RANGE_UNKEYED and CRUDD_SET_KEYS are supported.
    CRUDD_HAS_INDEXES = 1u << 4,
    /// CRUDD_BY_SEQUENCE and `trim_history` are supported for collections that were opened with CRUDD_OPEN_SEQUENCES:
    /// these remember what was removed.
    CRUDD_HAS_SEQUENCES = 1u << 5,
    /// `expires_at` is stored, a record that has expired is left out everywhere (see crudd_record), and
    /// `remove_expired` is supported.
    CRUDD_HAS_EXPIRY = 1u << 6,
    /// `take_history` is supported: a collection can continue the history of another one, so that cursors stay valid
    /// when it is moved here. Needs CRUDD_HAS_SEQUENCES.
    CRUDD_TAKES_HISTORY = 1u << 7,
    /// Others write to the storage while it is open: daemons on other machines, say. The host moves no collection
    /// there or from there, as what others write to it meanwhile would be lost. It declares nothing that the plugin can
    /// do: one that can be used alone too takes it back, for some options, by `capabilities_with` and `open`.
    ///
    /// With CRUDD_HAS_SEQUENCES as well, the storage numbers changes itself, in the order in which others can see them
    /// complete: the numbers that the host gives with mutations say only their order within one call, `last_sequence`
    /// is 0, `read_history` is there, and the plugin may call `changed` of crudd_host.
    CRUDD_IS_SHARED = 1u << 8,
};

// MARK: The host, as a plugin sees it

typedef enum crudd_log_level { CRUDD_LOG_DEBUG, CRUDD_LOG_INFO, CRUDD_LOG_WARNING, CRUDD_LOG_ERROR } crudd_log_level;

typedef enum crudd_state { CRUDD_DOWN = 0, CRUDD_UP = 1 } crudd_state;

/// A storage whose identity does not matter, but that is there.
#define CRUDD_ANY_STORAGE 0xffffffffffffffffu

/// Lives as long as the backend. Its functions may be called from any thread.
typedef struct crudd_host {
    uint32_t struct_size;
    void *context;
    /// A line for the administrator; never the content of a record.
    void (*log)(void *context, crudd_log_level level, crudd_bytes message);
    /// Optional for a plugin to call: the call in progress advances. It postpones the call's time-out. `total` is 0
    /// where it is not known.
    void (*progress)(void *context, uint64_t done, uint64_t total);
    /// Optional for a plugin to call: the storage was lost, or is back, and why. While it is down the host answers
    /// requests with `unavailable` and makes no calls but `idle`, about once a second, in which the plugin reconnects.
    /// CRUDD_UP of storage that is up: the reason is a notice for the administrator (its disk is full, say), which
    /// stands until the next report; an empty one: none. While there is one, `idle` is called every five seconds.
    void (*state)(void *context, crudd_state state, crudd_bytes reason);
    /// The identity (see crudd_opened) of the storage that has to be there, as the host has collections in it;
    /// CRUDD_ANY_STORAGE: any that is there; 0: any, and `open` makes it if need be. Where it is not 0, `open` makes no
    /// storage: where there is none, or another one, it changes nothing and returns CRUDD_NOT_FOUND. Storage that ends
    /// with its process ignores this.
    uint64_t expected_storage;
    /// Optional for a plugin to call, with CRUDD_IS_SHARED: more changes of a collection can be read, or it may have
    /// been made, whichever host has done that; requests that wait for one look again. A hint: the host relies on
    /// `read_history` alone.
    void (*changed)(void *context, crudd_bytes name);
} crudd_host;

/// What the host says of a call that may take long.
typedef struct crudd_call {
    uint32_t struct_size;
    uint32_t reserved;
    int64_t now;       ///< the clock by which records expire: milliseconds since 1970-01-01 UTC
    int64_t deadline;  ///< when nobody waits any more: nanoseconds of CLOCK_MONOTONIC; 0: no deadline
    /// Optional (may be NULL). To be called every millisecond or so by whatever may take longer; non-zero: nobody waits
    /// for the result any more, stop and return CRUDD_INTERRUPTED.
    int32_t (*interrupted)(void *context);
    void *context;  ///< of `interrupted`
} crudd_call;

/// Objects that a plugin makes and the host hands back. The host never looks inside.
typedef struct crudd_backend crudd_backend;
typedef struct crudd_collection crudd_collection;
typedef struct crudd_reader crudd_reader;
typedef struct crudd_backup crudd_backup;

/// What a backend says of itself once it is open. The host has zeroed it, but for `capabilities`.
typedef struct crudd_opened {
    uint32_t struct_size;
    /// How many readers beside those of event loops serve it best, such as several connections to a server; 0: one.
    uint32_t readers;
    /// Set by the host to those of the plugin; options may take some away (durability, say).
    uint64_t capabilities;
    /// No mutation that ever took effect here had a higher sequence number. It may be an upper bound. 0 where the
    /// storage numbers changes itself, see CRUDD_IS_SHARED.
    uint64_t last_sequence;
    /// Optional. The absolute path of a file with a number of four bytes, in the machine's order, that every commit
    /// increments by one, whoever makes it, and nothing else changes; valid while the backend is open. By this number a
    /// host caches the records of a plugin in a child process without a call that asks for `data_version`.
    crudd_bytes commit_counter_path;
    uint64_t commit_counter_offset;  ///< where the number is in the file
    /// A random number that is not 0, made when the storage was made and stored in it: a copy or a restored backup has
    /// the same one, any other storage another. So the host notices that it was led elsewhere. 0: the storage promises
    /// nothing beyond its process, or the number could not be stored yet.
    uint64_t identity;
} crudd_opened;

// MARK: Collections

enum {
    CRUDD_OPEN_CREATE = 1u << 0,     ///< create it if it is not there; otherwise that is CRUDD_NOT_FOUND
    /// CRUDD_BY_SEQUENCE will be used: keep the records in the order of their sequence numbers, and remember what is
    /// removed from now on (see crudd_history). Without it the collection forgets both, unless others that write to the
    /// storage (CRUDD_IS_SHARED) have opened it with this. Only with CRUDD_HAS_SEQUENCES.
    CRUDD_OPEN_SEQUENCES = 1u << 1,
    /// Only to look, or to remove records: nothing is made or changed, and the collection's indexes, its order by
    /// sequence number and what it remembers stay as they are. `indexes` is empty and no other flag is set. Until it is
    /// opened without this flag the host only reads, scans and counts by id, and removes. One that is open stays open
    /// as it is, for all calls.
    CRUDD_OPEN_AS_IT_IS = 1u << 2,
};

/// How a collection is to be opened.
typedef struct crudd_collection_spec {
    uint32_t struct_size;
    uint32_t flags;    ///< CRUDD_OPEN_…
    crudd_bytes name;  ///< 1 to 128 bytes of UTF-8 without control characters; anything else is legal
    /// "json", "xml" or "plist": what the items are, for a file's extension and the like. The same name with another
    /// format is another collection.
    crudd_bytes format;
    /// The names of the collection's indexes, property paths; index n is the one at position n. With CRUDD_HAS_INDEXES
    /// only. An index that is new has no keys yet, one that is no longer named is dropped with its keys.
    const crudd_bytes *indexes;
    size_t index_count;
} crudd_collection_spec;

// MARK: Records

enum {
    /// From the plugin, with CRUDD_BY_SEQUENCE: the record was removed. `id` and `sequence` alone mean anything.
    CRUDD_RECORD_REMOVED = 1u << 0,
};

/// A record, in both directions.
///
/// One whose `expires_at` is not 0 and not later than crudd_call.now has expired: `read`, `scan` and `count` leave it
/// out, and for preconditions it is not there.
typedef struct crudd_record {
    uint32_t struct_size;
    uint32_t flags;        ///< CRUDD_RECORD_…
    crudd_bytes id;        ///< 1 to 512 bytes of UTF-8 without control characters; anything else is legal
    /// Empty where it was not asked for. From the plugin also where what is stored cannot be decoded: this record alone
    /// is corrupt then.
    crudd_bytes item;
    crudd_bytes revision;  ///< 1 to 64 bytes of printable ASCII
    int64_t expires_at;    ///< milliseconds since 1970-01-01 UTC; 0: never
    /// Made by the host, rising in commit order, but for copies (see crudd_taken_history); 0: by another program. Where
    /// the storage numbers changes itself (see CRUDD_IS_SHARED): from the plugin its own number.
    uint64_t sequence;
    /// To the plugin: a key for each index of the collection, in their order; an empty one stands for none. At most 512
    /// bytes, compared byte by byte. From the plugin: NULL.
    const crudd_bytes *keys;
    size_t key_count;
    /// From the plugin, with CRUDD_SCAN_ANY_ORDER: where the record stands in the plugin's own order. It rises in the
    /// course of the scan, and a record keeps it until it is removed. 0: the records come by id.
    uint64_t position;
} crudd_record;

// MARK: Reading

enum {
    CRUDD_READ_WITHOUT_ITEMS = 1u << 0,
    /// A hint: the next `write` of the backend is going to store these records, each on condition that it is still
    /// what is read now, and that condition has failed before. A plugin whose storage other hosts write as well may
    /// lock them until that call, or `end_snapshot` of the reader, has returned. No call of the backend is in progress
    /// then.
    CRUDD_READ_TO_WRITE = 1u << 1,
};

/// Receives one record. `index` is the position of its id in the request (`read`) or counts from 0 (`scan`).
/// Returns 0 to continue; anything else makes the plugin stop and return CRUDD_OK.
typedef int32_t (*crudd_emit)(void *context, size_t index, const crudd_record *record);

/// Reads records by id. Each record that is there is emitted once for each position that asks for it; one that is not
/// is left out.
typedef struct crudd_read {
    uint32_t struct_size;
    uint32_t flags;  ///< CRUDD_READ_WITHOUT_ITEMS, CRUDD_READ_TO_WRITE
    const crudd_collection *collection;
    const crudd_bytes *ids;
    size_t count;
    crudd_emit emit;
    void *context;
} crudd_read;

/// The order in which records are scanned.
enum {
    CRUDD_BY_ID = 0,        ///< id, ascending by byte
    CRUDD_BY_KEY = 1,       ///< key of one index, then id, both ascending by byte; records without a key are left out
    /// Sequence number; records without one are left out. What was removed stands there too, with the number of its
    /// removal and CRUDD_RECORD_REMOVED; it may be left out once the same id has been stored again.
    CRUDD_BY_SEQUENCE = 2,
};

enum {
    /// With CRUDD_BY_KEY: instead, only the records that have no key in that index, by id; the bounds are ids.
    CRUDD_RANGE_UNKEYED = 1u << 0,
    /// With CRUDD_BY_SEQUENCE: instead, only the records that have no sequence number, by id; the bounds are ids.
    CRUDD_RANGE_UNSEQUENCED = 1u << 1,
};

/// Which records of a collection, and in which order.
typedef struct crudd_range {
    uint32_t struct_size;
    uint32_t flags;  ///< CRUDD_RANGE_…
    uint32_t order;  ///< CRUDD_BY_…
    uint32_t index;  ///< CRUDD_BY_KEY: the index
    crudd_bytes lower;  ///< the least id or key, included; empty: no bound. An id is valid UTF-8
    crudd_bytes upper;  ///< above the greatest id or key; empty: no bound. An id is valid UTF-8
    uint64_t lower_sequence;  ///< CRUDD_BY_SEQUENCE: the least, included
    uint64_t upper_sequence;  ///< CRUDD_BY_SEQUENCE: above the greatest; 0: no bound
} crudd_range;

enum {
    CRUDD_SCAN_WITHOUT_ITEMS = 1u << 0,
    CRUDD_SCAN_REVERSE = 1u << 1,  ///< the whole order reversed, ids of equal keys too
    /// By id, without bounds and not reversed only: the host needs no order. A plugin to which its own order is cheaper
    /// (that of a heap or a log) emits the records in that one, each with its `position`. Any other ignores this.
    CRUDD_SCAN_ANY_ORDER = 1u << 2,
};

/// Scans records in order.
typedef struct crudd_scan {
    uint32_t struct_size;
    uint32_t flags;  ///< CRUDD_SCAN_…
    const crudd_collection *collection;
    const crudd_range *range;
    /// Where to resume: only records behind this one in the direction of the scan. By id: `after_id`, also with
    /// CRUDD_RANGE_UNKEYED and CRUDD_RANGE_UNSEQUENCED; by key: both; by sequence: neither, the range says it. An empty
    /// `after_id`: from the start.
    crudd_bytes after_key;
    crudd_bytes after_id;
    size_t limit;  ///< at most so many; 0: no limit
    crudd_emit emit;
    void *context;
    /// With CRUDD_SCAN_ANY_ORDER: only records behind this position; 0: `after_id` says where to resume.
    uint64_t after_position;
} crudd_scan;

/// Counts records; what was removed is none.
typedef struct crudd_count {
    uint32_t struct_size;
    uint32_t flags;
    const crudd_collection *collection;
    const crudd_range *range;
    uint64_t limit;  ///< counting may stop there; 0: no limit
} crudd_count;

// MARK: Writing

/// The kind of a mutation.
enum {
    CRUDD_PUT = 0,       ///< stores the whole record
    CRUDD_REMOVE = 1,    ///< removes the record with that id
    CRUDD_CHECK = 2,     ///< changes nothing, only its precondition counts; only with CRUDD_WRITE_ATOMIC
    CRUDD_SET_KEYS = 3,  ///< stores the keys and nothing else; only with CRUDD_IF_REVISION and CRUDD_HAS_INDEXES
};

/// The precondition of a mutation. A failed one is the mutation's outcome and changes nothing.
enum { CRUDD_IF_ANY = 0, CRUDD_IF_ABSENT = 1, CRUDD_IF_PRESENT = 2, CRUDD_IF_REVISION = 3 };

/// One change of one record.
typedef struct crudd_mutation {
    uint32_t struct_size;
    uint32_t kind;          ///< CRUDD_PUT, …
    uint32_t precondition;  ///< CRUDD_IF_…
    uint32_t reserved;
    crudd_collection *collection;
    crudd_bytes expected;        ///< CRUDD_IF_REVISION: the revision that must be there
    const crudd_record *record;  ///< all of it for CRUDD_PUT; `id` and `sequence` for CRUDD_REMOVE (0: of a copy, which
                                 ///< is not remembered); `id` and `keys` for CRUDD_SET_KEYS; `id` for CRUDD_CHECK
} crudd_mutation;

/// The outcome of one mutation.
///
/// CRUDD_OK; CRUDD_EXISTS (IF_ABSENT and there is a record); CRUDD_NOT_FOUND (IF_PRESENT and there is none, IF_REVISION
/// and there is none, CRUDD_REMOVE and there is none); CRUDD_MISMATCH (another revision is there, see `revision`);
/// CRUDD_NO_SPACE, CRUDD_CORRUPT, CRUDD_UNSUPPORTED, CRUDD_UNAVAILABLE, CRUDD_OUTCOME_UNKNOWN or CRUDD_INTERNAL where
/// this one alone failed. A kind or precondition that is not defined here, CRUDD_SET_KEYS without CRUDD_IF_REVISION,
/// and CRUDD_CHECK without CRUDD_WRITE_ATOMIC are CRUDD_UNSUPPORTED and change nothing, whether or not there is a
/// record.
typedef struct crudd_outcome {
    uint32_t struct_size;
    crudd_status status;
    uint32_t replaced;       ///< CRUDD_PUT that took effect: 1 if a record was there before, else 0
    uint32_t revision_size;  ///< CRUDD_MISMATCH: the size of `revision`
    uint8_t revision[64];    ///< CRUDD_MISMATCH: the revision that is there
} crudd_outcome;

enum { CRUDD_WRITE_ATOMIC = 1u << 0 };

/// Mutations that take effect in order, each seeing those before it. A plugin with transactions puts all of them into
/// one; either way, CRUDD_OK is returned only when every mutation whose outcome is CRUDD_OK is as durable as the plugin
/// promises. Any other status means that no mutation was applied (CRUDD_OUTCOME_UNKNOWN: that some may have been).
///
/// With CRUDD_WRITE_ATOMIC the first outcome that is not CRUDD_OK undoes all: the call still returns CRUDD_OK, that
/// outcome stands at its place, and nothing was applied.
///
/// Both arrays have `count` elements, the next one `mutation_size` or `outcome_size` bytes further.
typedef struct crudd_write {
    uint32_t struct_size;
    uint32_t flags;  ///< CRUDD_WRITE_ATOMIC
    const crudd_mutation *mutations;
    size_t mutation_size;
    crudd_outcome *outcomes;  ///< zeroed by the host, but for `struct_size`
    size_t outcome_size;
    size_t count;
} crudd_write;

// MARK: Expiry and removals

/// Removes records that have expired by crudd_call.now, those that expired first first, as one batch like that of a
/// `write`. The record that is removed as number n, from 0, gets the sequence number `first_sequence` + n; where the
/// storage numbers changes itself (see CRUDD_IS_SHARED), one of the storage's own, and the number that is emitted does
/// not count.
typedef struct crudd_expire {
    uint32_t struct_size;
    uint32_t flags;  ///< 0
    crudd_collection *collection;
    size_t limit;  ///< at most so many, and that many if there are; 0: none
    uint64_t first_sequence;
    /// Receives each record that was removed, `id` and `sequence` alone, as soon as its removal is as durable as the
    /// plugin promises. Its return value is ignored.
    crudd_emit emit;
    void *context;
} crudd_expire;

/// Forgets removals that are older than a moment, those with the lowest sequence numbers first. It may stop at one that
/// is not older, whatever stands behind it.
typedef struct crudd_trim {
    uint32_t struct_size;
    uint32_t flags;  ///< 0
    crudd_collection *collection;
    int64_t before;  ///< milliseconds since 1970-01-01 UTC; a removal is as old as crudd_call.now of its write
    size_t limit;    ///< at most so many; 0: none, this is to read the history
} crudd_trim;

/// What a collection that was opened with CRUDD_OPEN_SEQUENCES remembers. The host has zeroed it.
typedef struct crudd_history {
    uint32_t struct_size;
    uint32_t reserved;
    /// A random number that is not 0 and that nobody can guess, as the host encrypts cursors with it. It is made when
    /// the collection is first opened with CRUDD_OPEN_SEQUENCES, stored with it, and ends with the collection, and when
    /// that is opened without CRUDD_OPEN_SEQUENCES.
    uint64_t identity;
    /// The highest sequence number of a removal that was forgotten by `trim_history`; 0: none. It is stored in the
    /// transaction that forgets.
    uint64_t forgotten;
    uint64_t trimmed;  ///< how many removals this call has forgotten
    /// Of `read_history`: every change of the collection up to this number is shown by a scan that begins later, unless
    /// it never takes effect. A change that was acknowledged before is among them, unless a transaction of others that
    /// is in progress for long holds it up. It may fall where the record with that number is changed again meanwhile.
    uint64_t end;
    /// Of `read_history`: a change that is still to take effect, or to be shown, has this number or a higher one; it is
    /// above `end`, and never falls as long as `identity` stays the same.
    uint64_t next;
} crudd_history;

/// Has a collection that was opened with CRUDD_OPEN_SEQUENCES continue the history of another one, which is being moved
/// here: the host stores copies of its records, and a client that has seen the changes there up to a number gets those
/// that follow here.
///
/// A copy is stored by `write` and has the sequence number of its original, which may be lower than others of the
/// backend, also of this collection; a copy that is removed again, as its original was, has the number 0 for the
/// removal, and nothing is remembered. The host calls this before it stores copies, as often as there are removals
/// to be taken over, and once more at the end; it reads the collection by sequence number after that.
typedef struct crudd_taken_history {
    uint32_t struct_size;
    uint32_t flags;  ///< 0
    crudd_collection *collection;
    uint64_t identity;   ///< `identity` of crudd_history from then on; at most 2^63 - 1
    uint64_t forgotten;  ///< `forgotten` of crudd_history from then on
    /// `last_sequence` of crudd_opened is not lower from then on.
    uint64_t last_sequence;
    /// Removals to be remembered besides, `id` and `sequence` alone, as old as crudd_call.now. One that is remembered
    /// already, by id and number, is not remembered twice. The next one is `removal_size` bytes further.
    const crudd_record *removals;
    size_t removal_size;
    size_t count;
} crudd_taken_history;

// MARK: Backups

/// How far a backup has come. The host has zeroed it.
typedef struct crudd_backup_progress {
    uint32_t struct_size;
    uint32_t is_complete;  ///< 1: the file has the whole copy; there are no more steps
    uint64_t bytes;        ///< how many have been copied
    uint64_t total_bytes;  ///< how many there will be; 0: that is not known
} crudd_backup_progress;

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
    crudd_status (*open)(crudd_bytes options, const crudd_host *host, const crudd_call *call, crudd_backend **backend,
                         crudd_opened *opened, crudd_failure *failure);
    /// Closes it. All readers are closed by then; collections end with their backend.
    void (*close)(crudd_backend *backend);

    /// Opens a collection. A second time with other flags or indexes brings those up to date; the collection stays the
    /// same object, and what the position of an index means changes for all calls from then on. It may not take long:
    /// keys of new indexes are the host's to fill in.
    crudd_status (*open_collection)(crudd_backend *backend, const crudd_call *call, const crudd_collection_spec *spec,
                                    crudd_collection **collection, crudd_failure *failure);
    /// Removes a collection with its records, in every format. The host does not use an open one any more.
    crudd_status (*drop_collection)(crudd_backend *backend, const crudd_call *call, crudd_bytes name,
                                    crudd_failure *failure);
    /// Names every collection that is there.
    crudd_status (*list_collections)(crudd_backend *backend, const crudd_call *call, crudd_emit_name emit,
                                     void *context, crudd_failure *failure);

    /// Makes a reader; one call at a time on each. A plugin that declares CRUDD_CAN_READ_CONCURRENTLY may be asked for
    /// several at once, beside the backend's other calls, and to close them likewise.
    crudd_status (*open_reader)(crudd_backend *backend, crudd_reader **reader, crudd_failure *failure);
    void (*close_reader)(crudd_reader *reader);

    crudd_status (*read)(crudd_reader *reader, const crudd_call *call, const crudd_read *request,
                         crudd_failure *failure);
    crudd_status (*scan)(crudd_reader *reader, const crudd_call *call, const crudd_scan *request,
                         crudd_failure *failure);
    crudd_status (*count)(crudd_reader *reader, const crudd_call *call, const crudd_count *request, uint64_t *count,
                          crudd_failure *failure);

    crudd_status (*write)(crudd_backend *backend, const crudd_call *call, const crudd_write *request,
                          crudd_failure *failure);

    /// Optional. Releases the snapshot that the reader holds. A reader may keep showing the state of the first call
    /// after the last `end_snapshot`; the host calls this before a read that has to see a later write, and within 100
    /// ms of the last read.
    void (*end_snapshot)(crudd_reader *reader);
    /// Optional. A number that differs from the last one whenever somebody beside this backend has written since; 0:
    /// that cannot be told. It takes microseconds.
    uint64_t (*data_version)(crudd_reader *reader);
    /// Optional. Maintenance while nothing is queued (a checkpoint, a clean-up).
    void (*idle)(crudd_backend *backend, const crudd_call *call);

    /// With CRUDD_HAS_EXPIRY. `next_expiry` is set to the lowest `expires_at` of the records that are stored after it
    /// (more may have expired than `limit`), or 0 where none expires; it may be too low. With CRUDD_IS_SHARED another
    /// host may be the one that removes them: then it is when this one is to ask again.
    crudd_status (*remove_expired)(crudd_backend *backend, const crudd_call *call, const crudd_expire *request,
                                   int64_t *next_expiry, crudd_failure *failure);
    /// With CRUDD_HAS_SEQUENCES. For a collection that was opened without CRUDD_OPEN_SEQUENCES: CRUDD_UNSUPPORTED.
    crudd_status (*trim_history)(crudd_backend *backend, const crudd_call *call, const crudd_trim *request,
                                 crudd_history *history, crudd_failure *failure);

    /// Optional. The capabilities that these options, which `check_options` has accepted, leave, as far as that can be
    /// told without touching storage; `open` may take away more. So what another part of the configuration needs and
    /// the options switch off is an error of the file.
    uint64_t (*capabilities_with)(crudd_bytes options);

    /// Optional (may be NULL). A JSON pointer (RFC 6901) to the option that says where the storage is, such as "/path".
    /// Two backends of the plugin for which it has the same value would write to the same storage, which is an error of
    /// the configuration. An absolute path is resolved first, if there is something: what counts is where it leads to.
    const char *storage_option;

    /// Optional, all three or none: a copy of the storage as of one moment, which is made while the storage is used.
    ///
    /// `begin_backup` is a call of the backend. `path` is absolute and leads to an empty file of the host's, into which
    /// the copy is written and nothing beside it; the host gives it its final name, and syncs it, when the copy is
    /// complete. The moment is that of `begin_backup`: what was written before is in the copy, what is written later is
    /// not, and the storage's identity is. One backup at a time for each backend.
    crudd_status (*begin_backup)(crudd_backend *backend, const crudd_call *call, crudd_bytes path,
                                 crudd_backup **backup, crudd_failure *failure);
    /// Copies on for some milliseconds. One call at a time for each backup; with CRUDD_CAN_READ_CONCURRENTLY at the
    /// same time as any other call. After a failure only `end_backup` follows.
    crudd_status (*step_backup)(crudd_backup *backup, const crudd_call *call, crudd_backup_progress *progress,
                                crudd_failure *failure);
    /// Ends a backup, complete or not. The file stays, and is the host's. All backups are ended before `close`.
    void (*end_backup)(crudd_backup *backup);

    /// Optional (may be NULL). What an administrator uses in the place of `begin_backup` where there is none, such as
    /// "use pg_dump": the end of a sentence.
    const char *backup_advice;

    /// With CRUDD_TAKES_HISTORY. One transaction: all of it or nothing, as durable as a `write`. For a collection that
    /// was opened without CRUDD_OPEN_SEQUENCES: CRUDD_UNSUPPORTED.
    crudd_status (*take_history)(crudd_backend *backend, const crudd_call *call, const crudd_taken_history *request,
                                 crudd_failure *failure);

    /// With CRUDD_IS_SHARED and CRUDD_HAS_SEQUENCES. What a collection remembers by now, and up to where its changes
    /// can be read; `trimmed` is 0. For a collection that keeps no sequence numbers: CRUDD_UNSUPPORTED.
    crudd_status (*read_history)(crudd_reader *reader, const crudd_call *call, const crudd_collection *collection,
                                 crudd_history *history, crudd_failure *failure);
} crudd_plugin;

/// The one symbol that a plugin exports. The table that it returns lives as long as the process.
const crudd_plugin *crudd_plugin_entry(void);

#ifdef __cplusplus
}
#endif

#endif
