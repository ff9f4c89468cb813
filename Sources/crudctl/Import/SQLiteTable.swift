import CRUDModel
import Glibc

/// A table of a SQLite file as comma-separated values, which the program `sqlite3` writes: crudctl has no database.
///
/// Its NULL is a field that is missing, and its empty text one that is empty, as ``ImportColumn`` has them.
struct SQLiteTable {
    /// What the program has written.
    let input: DumpInput

    /// - Parameters:
    ///   - name: of the table or view.
    ///   - path: of the file, which is only read.
    ///   - progress: is called with the number of bytes that have come.
    /// - Throws: `unavailable` without the program, `invalid_params` where it fails; it says why on standard error.
    init(_ name: String, in path: String, progress: (Int) -> Void) throws {
        let query = "SELECT * FROM \"\(name.replacing("\"", with: "\"\""))\""
        let words = [
            "sqlite3", "-init", "/dev/null", "-batch", "-readonly", "-header", "-csv",
            CompanionProgram.argument(path: path), query,
        ]
        guard let ends = SpawnedProgram.pipe() else {
            throw CRUDError(.unavailable, "cannot make a pipe: \(ErrorNumber.message)")
        }
        defer { close(ends.output) }
        let program: SpawnedProgram
        do {
            defer { close(ends.input) }
            program = try SpawnedProgram(words[0], words, output: ends.input)
        }
        input = try DumpInput("/proc/self/fd/\(ends.output)", holding: "a table", progress: progress)
        guard program.wait() == 0 else {
            throw CRUDError(.invalidParams, "sqlite3 cannot read table \(quoted(name.utf8)) of \(path)")
        }
    }
}
