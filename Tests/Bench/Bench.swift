import ArgumentParser

/// `crudd-bench`: one thread, raw epoll and raw sockets, so that the cost of the client is small and known.
@main
struct Bench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "crudd-bench",
        abstract: "Measures crudd, Redis or an echo over a Unix socket.",
        subcommands: [
            LoadCommand.self, FollowCommand.self, MoveCommand.self, IndexCommand.self, ExpireCommand.self,
            CollectionsCommand.self, EchoCommand.self, StartCommand.self, ValueCommand.self, ReportCommand.self,
            CompareCommand.self,
        ])
}
