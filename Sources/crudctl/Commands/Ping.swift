import ArgumentParser

struct Ping: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Asks the daemon for a sign of life.")

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        try show(try await call("daemon.ping"))
    }
}
