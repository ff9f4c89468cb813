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
        try await withClient { try await $0.call(method, json: params) }
    }

    /// Does something with a connection. Each call has as long as `--timeout` says.
    func withClient<Result: Sendable>(_ body: (Client) async throws -> Result) async throws -> Result {
        let settings = settings
        let patience = Duration.seconds(settings.timeout ?? 30)
        let client = try await CRUDClient.withDeadline(in: patience) {
            try await CRUDClient.connect(
                path: settings.socket, options: CRUDClient.Options(name: "crudctl/\(CRUDVersion.current)"))
        }
        return try await body(Client(client: client, patience: patience))
    }

    /// How results are printed.
    var printer: ResultPrinter {
        let settings = settings
        let terminal = Terminal(allowsColor: !settings.noColor)
        return ResultPrinter(
            format: settings.output ?? (terminal.isTerminal ? .table : .json), terminal: terminal)
    }

    /// Prints a result. One that is a list has it in the member `list`.
    func show(_ result: [UInt8], list: StaticString? = nil) throws {
        try StandardOutput.write(printer.text(of: result, list: list))
    }
}

/// A connection to the daemon.
struct Client {
    fileprivate let client: CRUDClient
    fileprivate let patience: Duration

    /// Calls `method` and returns the result's text.
    func call(_ method: String, json params: [UInt8]) async throws -> [UInt8] {
        try await CRUDClient.withDeadline(in: patience) { try await client.call(method, json: params) }
    }
}
