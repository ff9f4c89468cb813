#if __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#else
#include <postgresql/libpq-fe.h>
#endif

/// Fields of an error, which are macros of characters that Swift's importer leaves out.
enum {
    cpostgresql_severity = PG_DIAG_SEVERITY_NONLOCALIZED,
    cpostgresql_sqlstate = PG_DIAG_SQLSTATE,
    cpostgresql_message = PG_DIAG_MESSAGE_PRIMARY,
    cpostgresql_constraint = PG_DIAG_CONSTRAINT_NAME,
    cpostgresql_context = PG_DIAG_CONTEXT,
};
