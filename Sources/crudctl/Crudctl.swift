import ArgumentParser
import CRUDModel

/// The command line of crudd.
@main
struct Crudctl: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "crudctl",
        abstract: "Stores, reads and administers records through a crudd daemon.",
        discussion: """
            ITEM is JSON text, @FILE, or - (or nothing) for standard input. Put -- before an ID or ITEM that begins \
            with a dash.

            Exit statuses: 0 done; 64 wrong usage; 65 the request is invalid, unsupported or too large; 66 no such \
            record or collection; 69 daemon or backend unavailable; 70 internal error or corrupt data; 73 the record \
            exists already; 75 revision mismatch, unknown outcome, no space or timeout; 77 permission denied; 78 \
            invalid configuration.
            """,
        version: "crudctl \(CRUDVersion.current)",
        groupedSubcommands: [
            CommandGroup(
                name: "Record",
                subcommands: [
                    Create.self, Read.self, Update.self, Upsert.self, Patch.self, Delete.self, QueryCommand.self,
                    Count.self,
                    DeleteMatching.self,
                ]),
            CommandGroup(
                name: "Daemon",
                subcommands: [
                    Collections.self, Backends.self, Plugins.self, Ping.self, Status.self, Reload.self,
                    CallCommand.self,
                    CheckConfig.self, CheckPlugin.self,
                ]),
        ])

    @OptionGroup(title: "Global options") var options: GlobalOptions

    static func main() async {
        do {
            var command = try parseAsRoot()
            guard var daemonCommand = command as? any DaemonCommand else { return try command.run() }
            do {
                try await daemonCommand.run()
            } catch let error as CRUDError {
                ErrorReport(error).print(as: daemonCommand.settings.output)
                exit(withError: ExitCode(error.exitStatus))
            }
        } catch {
            exit(withError: error)
        }
    }
}
