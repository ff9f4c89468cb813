import ArgumentParser

struct Ping: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Checks that the daemon replies.")

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        try show(try await call("daemon.ping"))
    }
}
