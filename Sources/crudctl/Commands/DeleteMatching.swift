import ArgumentParser
import CRUDJSON
import CRUDWire

struct DeleteMatching: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete-matching",
        abstract: "Deletes all records that match, and prints their number.",
        discussion: "Asks for confirmation on a terminal; elsewhere --yes is required.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var selection: SelectionArguments
    @Flag(help: "Delete every record of the collection.") var all = false
    @OptionGroup var confirmation: Confirmation

    func validate() throws {
        guard selection.isGiven != all else {
            throw ValidationError("Select the records by --where or --prefix, or give --all for every record.")
        }
        try confirmation.check()
    }

    func run() async throws {
        guard try all || selection.isRestricted() else {
            throw ValidationError("That is every record, which needs --all in place of --where and --prefix.")
        }
        let members = try selection.members()
        let isConfirmed = try await confirmation.isGiven {
            let count = ResultObject(try await call("record.count", members))?.integer("count")
            return "Delete \(Confirmation.records(count)) of \(selection.collection)?"
        }
        guard isConfirmed else { return }
        try show(
            try await call(
                "record.deleteMatching", on: selection.collection, isEmpty: { $0.integer("deleted") == 0 }
            ) { params in
                members(&params)
                if all { params.member("all", true) }
            })
    }
}
