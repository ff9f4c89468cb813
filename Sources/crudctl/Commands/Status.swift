import ArgumentParser

struct Status: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Prints the state of the daemon.")

    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        try show(
            try await call("daemon.status"),
            notations: ["uptimeSeconds": .age, "bytes": .bytes, "maximumBytes": .bytes], expandsObjects: true)
    }
}
