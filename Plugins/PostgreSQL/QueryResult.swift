import CPostgreSQL
import CRUDPluginKit

/// What the server has returned for one statement. Its values are in binary, and valid as long as it.
final class QueryResult {
    private let handle: OpaquePointer

    /// - Parameter handle: libpq's, which belongs to this object from now on.
    init(_ handle: OpaquePointer) {
        self.handle = handle
    }

    deinit {
        PQclear(handle)
    }

    var status: ExecStatusType { PQresultStatus(handle) }

    // MARK: Rows

    var rowCount: Int { Int(PQntuples(handle)) }

    /// How many rows the statement has changed or found.
    var affectedRows: Int { Int(String(cString: PQcmdTuples(handle))) ?? 0 }

    /// What the statement was, such as "COMMIT".
    var command: String { String(cString: PQcmdStatus(handle)) }

    func isNull(_ row: Int, _ column: Int32) -> Bool { PQgetisnull(handle, Int32(row), column) == 1 }

    /// The bytes of a value; none for NULL.
    func bytes(_ row: Int, _ column: Int32) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: PQgetvalue(handle, Int32(row), column), count: Int(PQgetlength(handle, Int32(row), column)))
    }

    func text(_ row: Int, _ column: Int32) -> String { String(decoding: bytes(row, column), as: UTF8.self) }

    /// A number of four or eight bytes, or a truth value; 0 for NULL.
    func integer(_ row: Int, _ column: Int32) -> Int64 {
        let bytes = bytes(row, column)
        switch bytes.count {
        case 8: return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        case 4: return Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
        case 1: return Int64(bytes[0])
        default: return 0
        }
    }

    // MARK: Errors

    /// Why the statement has failed; nil if it has not.
    var error: ServerError? {
        switch status {
        case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE, PGRES_NONFATAL_ERROR:
            ServerError(
                state: field(cpostgresql_sqlstate), message: field(cpostgresql_message),
                constraint: field(cpostgresql_constraint))
        case PGRES_PIPELINE_ABORTED: .skipped
        default: nil
        }
    }

    /// Throws if the statement has failed.
    ///
    /// - Parameter action: what was being done, as in "create a table".
    @discardableResult
    func check(_ action: String) throws(StorageFailure) -> QueryResult {
        if let error { throw error.failure(action) }
        return self
    }

    private func field(_ code: some BinaryInteger) -> String {
        PQresultErrorField(handle, Int32(code)).map { String(cString: $0) } ?? ""
    }
}
