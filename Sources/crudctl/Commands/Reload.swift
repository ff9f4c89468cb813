import ArgumentParser
import CRUDJSON

struct Reload: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Makes the daemon read its configuration again and prints the changes.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Flag(help: "Reload even if records of a collection would be orphaned.") var force = false

    func run() async throws {
        let result = try await call("daemon.reload") { params in
            if force { params.member("force", true) }
        }
        try show(result, list: "changes")
    }
}
