import ArgumentParser
import CRUDJSON
import CRUDWire

struct Backends: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the backends, their states, and what their storage takes.",
        discussion: "BYTES is what the storage at PATH takes on its disk, FREEBYTES what is free there.")

    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        let result = try await call("backend.list")
        guard printer.format == .table, let backends = ResultObject(result)?.elements("backends") else {
            return try show(result, list: "backends")
        }
        let objects = backends.compactMap { ResultObject(Array($0)) }
        // Each row has all columns, whose order is this one then.
        let columns = Self.columns.filter { column in objects.contains { $0.value(column) != nil } }
        var writer = JSONWriter()
        writer.object { result in
            result.member("backends", objects: objects) { backend, row in
                for name in columns {
                    row.key("\(name)")
                    row.raw(backend.value(name) ?? Array("\"\"".utf8)[...])
                }
            }
        }
        try show(
            writer.bytes, list: "backends",
            notations: [
                "bytes": .bytes, "freeBytes": .bytes, "path": .text(least: 20), "notice": .text(least: 24),
                "lastError": .text(least: 24), "capabilities": .list,
            ])
    }

    /// What matters most first: a table has no more than there is room for.
    private static let columns: [StaticString] = [
        "name", "state", "notice", "lastError", "plugin", "command", "bytes", "freeBytes", "path", "isolation",
        "restarts", "pid", "capabilities",
    ]
}
