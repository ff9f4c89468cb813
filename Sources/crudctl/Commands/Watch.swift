import ArgumentParser
import CRUDJSON
import CRUDModel

struct Watch: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints what changes in a collection, until it is interrupted.",
        discussion: """
            Each change is a line of JSON: {"id", "revision", "item"} of a record that was written, "matches": false \
            instead of the item if it does not satisfy --where, {"id", "deleted": true} of one that was deleted or has \
            expired. Several changes of a record may be printed as one. Where the daemon \
            becomes unavailable later, the command waits.

            With --cursor-file the command continues where it stopped; what it was printing when it stopped is printed \
            once more. The exit status is 65 if it stopped so long ago that deletions are forgotten: delete FILE to \
            begin again.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var selection: SelectionArguments
    @Option(
        help: ArgumentHelp(
            "Begin at start (every record, then what changes), now, or behind a cursor (default: start).",
            valueName: "start|now|cursor"),
        completion: .list(["start", "now"]))
    var after: String?
    @Option(
        name: .customLong("cursor-file"),
        help: ArgumentHelp(
            "Begin at the cursor in this file, if it exists, and keep the cursor of what was printed there.",
            valueName: "file"),
        completion: .file())
    var cursorFile: String?
    @Flag(name: .customLong("no-items"), help: "Print ids and revisions only.") var noItems = false

    func run() async throws {
        let members = try selection.members()
        let file = try cursorFile.map(CursorFile.init)
        let saved = try file?.read()
        try await withClient { client in
            var watching = ChangeWatching(client: client, cursor: saved ?? after ?? "start", file: file) { params in
                members(&params)
                if noItems { params.member("items", false) }
            }
            do {
                try await watching.run()
            } catch var error as CRUDError where error.code == .invalidQuery && error.details.node == nil {
                // No word of the command line is to blame: without a node it is not --where.
                if let file, saved != nil {
                    error.message += "; the cursor is that of \(file.path): delete it to begin again"
                }
                throw error
            }
        }
    }
}
