import ArgumentParser
import CRUDClient
import CRUDJSON

/// A command that calls the daemon and prints the result.
protocol DaemonCommand: AsyncParsableCommand {
    var options: GlobalOptions { get }
}

extension DaemonCommand {
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

    /// Connects and runs `body`. Each call has the timeout of `--timeout`.
    ///
    /// - Parameter timeout: in place of `--timeout`, in seconds.
    func withClient<Result: Sendable>(
        timeout: Double? = nil, _ body: (Client) async throws -> Result
    ) async throws -> Result {
        let timeout = Duration.seconds(timeout ?? options.timeout ?? 30)
        let client = try await CRUDClient.withDeadline(in: timeout) {
            try await CRUDClient.connect(
                path: options.socket, options: CRUDClient.Options(name: Client.name))
        }
        return try await body(Client(client: client, timeout: timeout))
    }

    /// How results are printed.
    var printer: ResultPrinter {
        let terminal = Terminal(allowsColor: !options.noColor)
        return ResultPrinter(
            format: options.output ?? (terminal.isTerminal ? .table : .json), terminal: terminal)
    }

    /// Calls a method that writes one record, and prints the result.
    ///
    /// - Parameters:
    ///   - item: the argument ITEM; nil: there is none.
    ///   - name: the member of `params` for the item.
    ///   - more: writes further members.
    func write(
        _ method: String, _ record: RecordArguments, _ item: String?, as name: String = "item",
        _ more: (inout JSONWriter) -> Void = { _ in }
    ) async throws {
        let text = try item.map { try TextSource(json: $0).json("the item") }
        let result = try await call(method) { params in
            record.write(to: &params)
            if let text {
                params.key(name)
                params.raw(text)
            }
            more(&params)
        }
        try show(result)
    }

    /// Prints a result.
    ///
    /// - Parameters:
    ///   - list: the member with the elements, if the result is a list.
    ///   - notations: how members are written in a table.
    func show(
        _ result: [UInt8], list: StaticString? = nil, notations: TableWriter.Notations = [:]
    ) throws {
        var printer = printer
        printer.notations = notations
        try printer.show(result, list: list)
    }
}

/// A connection to the daemon.
struct Client {
    /// How it introduces itself.
    static let name = "crudctl/\(CRUDVersion.current)"

    fileprivate let client: CRUDClient
    fileprivate let timeout: Duration

    /// Calls `method` and returns the result's text.
    ///
    /// - Parameter waiting: how long the daemon may hold back its reply, in addition to the timeout.
    func call(_ method: String, json params: [UInt8], waiting: Duration = .zero) async throws -> [UInt8] {
        try await CRUDClient.withDeadline(in: timeout + waiting) { try await client.call(method, json: params) }
    }
}
