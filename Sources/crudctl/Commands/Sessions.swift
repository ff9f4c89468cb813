import ArgumentParser

struct Sessions: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the sessions of all clients.",
        discussion: "To close one: crudctl call session.close '{\"session\": ID}'.")

    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        try show(
            try await call("session.list"), list: "sessions",
            notations: ["connectedAt": .instant, "receivedBytes": .bytes, "sentBytes": .bytes, "heldBytes": .bytes])
    }
}
