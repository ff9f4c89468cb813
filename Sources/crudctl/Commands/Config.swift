import ArgumentParser

struct Config: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints every setting of the daemon that is in force, and where its value comes from.",
        discussion: """
            SOURCE is file, default, environment, systemd (a socket that it has passed), start (the file says \
            otherwise by now, which takes a restart) or logLevel (crudctl log-level).
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        try show(try await call("daemon.configuration"), list: "settings")
    }
}
