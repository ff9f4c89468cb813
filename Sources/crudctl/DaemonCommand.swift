import ArgumentParser
import CRUDClient
import CRUDJSON

/// A command that asks the daemon for something and prints the answer.
protocol DaemonCommand: AsyncParsableCommand {
    var root: Crudctl { get }
    var options: GlobalOptions { get }
}

extension DaemonCommand {
    /// The global options, wherever they stand.
    var settings: GlobalOptions { options.filled(from: root.options) }

    /// Calls `method` with the `params` that `members` writes, and returns the result's text.
    func call(_ method: String, _ members: (inout JSONWriter) -> Void = { _ in }) async throws -> [UInt8] {
        var params = JSONWriter()
        params.object(members)
        return try await call(method, params: params.bytes)
    }

    /// Calls `method` and returns the result's text.
    func call(_ method: String, params: [UInt8]) async throws -> [UInt8] {
        let settings = settings
        return try await CRUDClient.withDeadline(in: .seconds(settings.timeout ?? 30)) {
            let client = try await CRUDClient.connect(
                path: settings.socket, options: CRUDClient.Options(name: "crudctl/\(CRUDVersion.current)"))
            return try await client.call(method, json: params)
        }
    }

    /// Prints a result. One that is a list has it in the member `list`.
    func show(_ result: [UInt8], list: StaticString? = nil) throws {
        let settings = settings
        let terminal = Terminal(allowsColor: !settings.noColor)
        let printer = ResultPrinter(
            format: settings.output ?? (terminal.isTerminal ? .table : .json), terminal: terminal)
        try StandardOutput.write(printer.text(of: result, list: list))
    }
}
