import ArgumentParser
import CRUDJSON

/// The record of a command.
struct RecordArguments: ParsableArguments {
    @Argument(help: "The collection's name.", completion: .collections) var collection: String
    @Argument(help: "The record's id.") var id: String

    func write(to params: inout JSONWriter) {
        params.member("collection", collection)
        params.member("id", id)
    }
}

/// The condition of a write.
struct Precondition: ParsableArguments {
    @Option(
        name: .customLong("if-revision"),
        help: ArgumentHelp("Write only if the record has this revision.", valueName: "revision"))
    var revision: String?

    func write(to params: inout JSONWriter) {
        if let revision { params.member("ifRevision", revision) }
    }
}

extension ArgumentHelp {
    static let item: ArgumentHelp = "The item: JSON text, @FILE, or - (or nothing) for standard input."
}
