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

/// Where the counter of commits is in the index of the write-ahead log.
enum { csqlite_commit_counter_offset = 8 };

/// The counter of commits in the index of the write-ahead log, which all processes share that have the file open; NULL
/// if there is none. It stays at its address while the connection is open.
///
/// It is the field iChange of https://www.sqlite.org/walformat.html#the_wal_index_header. The methods of the file are
/// asked for the shared memory, which SQLite has mapped: opening it a second time and closing it again would release
/// the locks of this process.
static inline const uint32_t *csqlite_commit_counter(sqlite3 *connection) {
    enum { regionBytes = 32768 };
    sqlite3_file *file = NULL;
    volatile void *index = NULL;
    if (sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file ||
        !file->pMethods || file->pMethods->iVersion < 2 ||
        file->pMethods->xShmMap(file, 0, regionBytes, 0, &index) != SQLITE_OK || !index)
        return NULL;
    return (const uint32_t *)((const char *)index + csqlite_commit_counter_offset);
}

/// Reads a number that other processes write.
static inline uint32_t csqlite_shared_value(const uint32_t *value) { return __atomic_load_n(value, __ATOMIC_ACQUIRE); }
