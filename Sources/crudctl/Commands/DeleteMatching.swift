import ArgumentParser
import CRUDClient
import CRUDJSON
import CRUDWire
import Glibc

struct DeleteMatching: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Deletes all records that match, and prints their number.",
        discussion: "Asks for confirmation on a terminal; elsewhere --yes is required.")

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var selection: SelectionArguments
    @Flag(help: "Delete every record of the collection.") var all = false
    @Flag(help: "Do not ask for confirmation.") var yes = false

    func validate() throws {
        guard selection.isRestricted != all else {
            throw ValidationError("Select the records by --where or --prefix, or give --all for every record.")
        }
        guard yes || isatty(STDIN_FILENO) == 1 else {
            throw ValidationError("There is no terminal to ask for confirmation: give --yes.")
        }
    }

    func run() async throws {
        let members = try selection.members()
        guard try await isConfirmed(members) else {
            StandardError.write("crudctl: nothing has been deleted\n")
            return
        }
        try show(
            try await call("record.deleteMatching") { params in
                members(&params)
                if all { params.member("all", true) }
            })
    }

    private func isConfirmed(_ members: (inout JSONWriter) -> Void) async throws -> Bool {
        if yes { return true }
        guard let count = ResultObject(try await call("record.count", members))?.integer("count") else {
            throw CRUDError(.internalError, "the daemon's reply has no count")
        }
        let name = selection.collection.withVisibleControls
        StandardError.write("Delete \(count) record\(count == 1 ? "" : "s") of \(name)? [y/N] ")
        let reply = readLine() ?? ""
        return ["y", "yes"].contains(reply.lowercased())
    }
}
