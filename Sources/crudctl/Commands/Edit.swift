import ArgumentParser
import CRUDClient
import CRUDJSON
import CRUDModel
import CRUDWire
import Glibc

struct Edit: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Opens a record's item in an editor, and updates the record.",
        discussion: """
            The editor is $VISUAL, else $EDITOR, else vi. The record is updated only if nobody else has changed it \
            meanwhile. Where it has been changed, or the text is not valid, the command offers to edit again; what was \
            typed stays in the file that it names until the record is updated. The record's expiry stays as it was.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments

    func run() async throws {
        var current = try await read()
        var file = try EditedFile(try current.indentedItem)
        while true {
            try file.edit()
            if !file.isChanged {
                file.remove()
                return StandardError.write("crudctl: nothing has been changed\n")
            }
            do {
                let result = try await update(current, try TextSource.file(file.path).json("the item"))
                file.remove()
                return try show(result)
            } catch let error as CRUDError {
                ErrorReport(error).print(asJSON: options.output == .json)
                if error.code == .revisionMismatch, let newer = try? await read() {
                    current = newer
                    try file.keepBeside(try newer.indentedItem)
                }
                guard error.code != .recordNotFound, Self.wantsToEditAgain else {
                    StandardError.write("crudctl: what you have typed is in \(file.path)\n")
                    throw ExitCode(error.exitStatus)
                }
            }
        }
    }

    private func read() async throws -> ResultObject {
        let result = try await call("record.read", on: record.collection) { record.write(to: &$0) }
        guard let object = ResultObject(result) else {
            throw CRUDError(.internalError, "the daemon's reply is not a record")
        }
        return object
    }

    private func update(_ former: ResultObject, _ item: [UInt8]) async throws -> [UInt8] {
        try await call("record.update", on: record.collection) { params in
            record.write(to: &params)
            params.key("item")
            params.raw(item)
            params.member("ifRevision", former.string("revision") ?? "")
            if let expiry = former.integer("expiresAt") { params.member("expiresAt", expiry) }
        }
    }

    /// Asks, where there is a terminal; the end of the input is no.
    private static var wantsToEditAgain: Bool {
        guard isatty(STDIN_FILENO) == 1 else { return false }
        StandardError.write("Edit again? [Y/n] ")
        var line = [UInt8](repeating: 0, count: 4096)
        let count = FileInput.read(STDIN_FILENO, into: &line)
        guard count > 0 else { return false }
        let reply = String(decoding: line.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        return ["", "y", "yes"].contains(reply.lowercased())
    }
}

extension ResultObject {
    /// The member `item`, a line for each of its members.
    fileprivate var indentedItem: [UInt8] {
        get throws {
            guard let item = value("item") else { throw CRUDError(.internalError, "the daemon's reply has no item") }
            var lines: [UInt8] = []
            let text = Array(item)
            var scanner = JSONScanner()
            try JSONPrinter(margin: 0).print(try scanner.value(text.span), text.span) { lines.append($0) }
            return lines + [UInt8(ascii: "\n")]
        }
    }
}
