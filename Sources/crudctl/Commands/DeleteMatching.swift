import ArgumentParser
import CRUDClient
import CRUDJSON
import CRUDWire
import Glibc

struct DeleteMatching: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Deletes all records that match, and prints how many these were.",
        discussion: "Asks before it deletes; without a terminal to ask on, --yes has to be given.")

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var selection: SelectionArguments
    @Flag(help: "Delete every record of the collection.") var all = false
    @Flag(help: "Do not ask.") var yes = false

    func validate() throws {
        guard selection.isRestricted != all else {
            throw ValidationError("Say which records are meant: --where, --prefix, or --all for every one.")
        }
        guard yes || isatty(STDIN_FILENO) == 1 else {
            throw ValidationError("There is no terminal to ask on: --yes says that it is meant.")
        }
    }

    func run() async throws {
        let members = try selection.members()
        guard try await isMeant(members) else {
            StandardError.write("crudctl: nothing has been deleted\n")
            return
        }
        try show(
            try await call("record.deleteMatching") { params in
                members(&params)
                if all { params.member("all", true) }
            })
    }

    private func isMeant(_ members: (inout JSONWriter) -> Void) async throws -> Bool {
        if yes { return true }
        guard let count = ResultObject(try await call("record.count", members))?.integer("count") else {
            throw CRUDError(.internalError, "the daemon's answer has no count")
        }
        let name = selection.collection.withVisibleControls
        StandardError.write("Delete \(count) record\(count == 1 ? "" : "s") of \(name)? [y/N] ")
        let answer = readLine() ?? ""
        return ["y", "yes"].contains(answer.lowercased())
    }
}
