import ArgumentParser
import CRUDClient
import CRUDJSON
import CRUDModel
import CRUDWire

struct Read: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints a record, or several.",
        discussion: """
            Several records are printed as a list, in the order of their ids. A record that cannot be read is named on \
            standard error; the others are printed, and the exit status is that of the first one.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The collection's name.", completion: .collections) var collection: String
    @Argument(help: "The ids of the records.") var id: [String]
    @Option(help: ArgumentHelp("Print these members of the item only.", valueName: "a,b.c")) var fields: String?
    @Flag(help: "Print the item only, as it is stored; several on lines of their own.") var raw = false

    func validate() throws {
        guard raw, let fields, fields.allSatisfy({ $0 == "," }) else { return }
        throw ValidationError("--fields names nothing of the item, which --raw prints.")
    }

    func run() async throws {
        guard id.count > 1 else {
            let result = try await call("record.read", on: collection) { write(id[0], to: &$0) }
            if raw { return try printItem(of: result) }
            return try show(result, notations: ["expiresAt": .instant])
        }
        try await readAll()
    }

    private func write(_ id: String, to params: inout JSONWriter) {
        params.member("collection", collection)
        params.member("id", id)
        if let fields { params.member("fields", strings: PropertyNames(fields).names) }
    }

    private func printItem(of record: [UInt8]) throws {
        guard let item = ResultObject(record)?.value("item") else {
            throw CRUDError(.internalError, "the daemon's reply has no item")
        }
        try StandardOutput.page(item + [UInt8(ascii: "\n")], isComposed: false)
    }

    // MARK: Several records

    private func readAll() async throws {
        var records: [[UInt8]] = []
        var failure: CRUDError?
        try await withClient { client in
            for id in id {
                var params = JSONWriter()
                params.object { write(id, to: &$0) }
                do {
                    records.append(try await client.call("record.read", json: params.bytes))
                } catch let error as CRUDError where error.isOfRecord {
                    failure = failure ?? error
                    ErrorReport(error).print(asJSON: options.output == .json)
                }
            }
            if records.isEmpty { await UnknownCollection.note(collection, client) }
        }
        if raw {
            for record in records { try printItem(of: record) }
        } else {
            var list = JSONWriter()
            list.object { result in
                result.key("records")
                result.array { for record in records { $0.raw(record) } }
            }
            var pages = PageWriter(printer, hasAllPages: false)
            if let page = ResultObject(list.bytes) { try pages.write(page) }
            try pages.end(hasMore: false)
        }
        if let failure { throw ExitCode(failure.exitStatus) }
    }
}

extension CRUDError {
    /// Whether it says something of one record only.
    fileprivate var isOfRecord: Bool { [.recordNotFound, .corrupt, .limitExceeded].contains(code) }
}
