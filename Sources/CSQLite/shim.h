#include <sqlite3.h>
#include <stdbool.h>

/// Turns SQLite's memory statistics off, and with them a lock that all connections of the process share. Swift cannot
/// call the variadic sqlite3_config. It has to come before any other use of SQLite in the process.
static inline int csqlite_disable_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// Whether a result code says that the disk would not confirm what was written. Swift's importer leaves the macros out.
static inline bool csqlite_is_sync_failure(int code) {
    return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC;
}
