import ArgumentParser

/// `crudd-bench`: one thread, raw epoll and raw sockets, so that what the client costs is small and known.
@main
struct Bench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "crudd-bench",
        abstract: "Loads crudd, Redis or an echo over a Unix socket and says how fast they answer.",
        subcommands: [
            LoadCommand.self, EchoCommand.self, StartCommand.self, ValueCommand.self, ReportCommand.self,
        ])
}
