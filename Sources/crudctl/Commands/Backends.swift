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
        var writer = JSONWriter()
        writer.object { result in
            result.member("backends", objects: backends.compactMap { ResultObject(Array($0)) }) { backend, row in
                for name in Self.columns {
                    guard let value = backend.value(name) else { continue }
                    row.key("\(name)")
                    row.raw(value)
                }
            }
        }
        try show(writer.bytes, list: "backends", notations: ["bytes": .bytes, "freeBytes": .bytes])
    }

    /// What matters most first: a table has no more than there is room for.
    private static let columns: [StaticString] = [
        "name", "state", "plugin", "command", "bytes", "freeBytes", "path", "notice", "lastError", "isolation",
        "restarts", "pid", "capabilities",
    ]
}
