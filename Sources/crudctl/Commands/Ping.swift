import ArgumentParser

struct Ping: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Checks that the daemon replies.")

    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        try show(try await call("daemon.ping"))
    }
}
