#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Turns SQLite's memory statistics off, and with them a lock that all connections of the process share. Swift cannot
/// call the variadic sqlite3_config. It has to come before any other use of SQLite in the process.
static inline int csqlite_disable_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// Whether a result code says that the disk would not confirm what was written. Swift's importer leaves the macros out.
static inline bool csqlite_is_sync_failure(int code) {
    return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC;
}

/// Whether a result code says that a trigger has called RAISE.
static inline bool csqlite_is_trigger_failure(int code) { return code == SQLITE_CONSTRAINT_TRIGGER; }

/// The methods of the database file; NULL if it has no shared memory.
static inline sqlite3_file *csqlite_file(sqlite3 *connection) {
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file ||
        !file->pMethods || file->pMethods->iVersion < 2)
        return NULL;
    return file;
}

/// A field of the index of the write-ahead log (https://www.sqlite.org/walformat.html), which all processes share that
/// have the file open; NULL if there is none. It stays at its address while the connection is open.
///
/// The methods of the file are asked for the shared memory, which SQLite has mapped: opening it a second time and
/// closing it again would release the locks of this process.
static inline uint32_t *csqlite_log_index(sqlite3 *connection, size_t offset) {
    enum { regionBytes = 32768 };
    sqlite3_file *file = csqlite_file(connection);
    volatile void *index = NULL;
    if (!file || file->pMethods->xShmMap(file, 0, regionBytes, 0, &index) != SQLITE_OK || !index) return NULL;
    return (uint32_t *)((char *)index + offset);
}

/// Where the counter of commits, the field iChange of the header, is in the index of the write-ahead log.
enum { csqlite_commit_counter_offset = 8 };

/// The counter of commits; NULL if there is none.
static inline const uint32_t *csqlite_commit_counter(sqlite3 *connection) {
    return csqlite_log_index(connection, csqlite_commit_counter_offset);
}

/// Sets how many frames of the log readers, and the next checkpoint, take for copied into the database file: the field
/// nBackfill. To be called between transactions; with more than 0 only while the log cannot be written from its start.
///
/// @return false where a checkpoint of another process is in progress.
static inline bool csqlite_set_copied_pages(sqlite3 *connection, uint32_t pages) {
    enum { offset = 96, checkpointLock = 1 };
    sqlite3_file *file = csqlite_file(connection);
    uint32_t *copied = csqlite_log_index(connection, offset);
    if (!file || !copied) return false;
    if (file->pMethods->xShmLock(file, checkpointLock, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE) != SQLITE_OK)
        return false;
    __atomic_store_n(copied, pages, __ATOMIC_RELEASE);
    file->pMethods->xShmLock(file, checkpointLock, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
    return true;
}

/// Has the disk take what was written to the database file. A result code of SQLite.
static inline int csqlite_sync(sqlite3 *connection) {
    sqlite3_file *file = csqlite_file(connection);
    return file ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY) : SQLITE_IOERR_FSYNC;
}

/// Reads a number that other processes write.
static inline uint32_t csqlite_shared_value(const uint32_t *value) { return __atomic_load_n(value, __ATOMIC_ACQUIRE); }
