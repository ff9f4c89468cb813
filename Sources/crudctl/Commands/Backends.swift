import ArgumentParser

struct Backends: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the backends and their states.")

    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        try show(try await call("backend.list"), list: "backends")
    }
}
