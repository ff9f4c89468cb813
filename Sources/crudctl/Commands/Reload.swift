import ArgumentParser
import CRUDJSON

struct Reload: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Has the daemon read its configuration again and prints what changed.")

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Flag(help: "Do it even if a collection would lose sight of its records.") var force = false

    func run() async throws {
        let result = try await call("daemon.reload") { params in
            if force { params.member("force", true) }
        }
        try show(result, list: "changes")
    }
}
