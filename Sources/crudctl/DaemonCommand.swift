import ArgumentParser
import CRUDClient
import CRUDJSON
import CRUDModel
import CRUDWire

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

    /// Calls `method` on a collection and returns the result's text. Where nothing is found there and the name may be
    /// mistyped, a note says so.
    ///
    /// - Parameters:
    ///   - isEmpty: whether a result shows that nothing was found.
    ///   - members: writes the members of `params`.
    func call(
        _ method: String, on collection: String, isEmpty: (ResultObject) -> Bool = { _ in false },
        _ members: (inout JSONWriter) -> Void
    ) async throws -> [UInt8] {
        var params = JSONWriter()
        params.object(members)
        return try await withClient { client in
            do {
                let result = try await client.call(method, json: params.bytes)
                if ResultObject(result).map(isEmpty) == true { await UnknownCollection.note(collection, client) }
                return result
            } catch let error as CRUDError where error.code == .recordNotFound {
                await UnknownCollection.note(collection, client)
                throw error
            }
        }
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
        let result = try await call(method, on: record.collection) { params in
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
    ///   - expandsObjects: whether the members of objects are lines of a table.
    func show(
        _ result: [UInt8], list: StaticString? = nil, notations: TableWriter.Notations = [:],
        expandsObjects: Bool = false
    ) throws {
        var printer = printer
        printer.notations = notations
        printer.expandsObjects = expandsObjects
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
