import ArgumentParser

struct Status: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Tells how the daemon is.")

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        try show(try await call("daemon.status"))
    }
}
