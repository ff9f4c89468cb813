import ArgumentParser
import CRUDModel

/// The command line of crudd.
struct Crudctl: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "crudctl",
        abstract: "Stores, reads and administers records through a crudd daemon.",
        discussion: """
            Alone on a terminal it is a prompt for the same commands; what is typed is remembered in \
            $XDG_STATE_HOME/crudctl/history, except lines that begin with a space. On a terminal, output that is \
            longer than the screen goes to $CRUDCTL_PAGER or $PAGER (default: less, with LESS=FRX unless that is set).

            ITEM and PARAMS are JSON text, @FILE, or - (for ITEM also nothing) for standard input. Put -- before an ID \
            or ITEM that begins with a dash, unless it is a number at the end of the line.

            Exit statuses: 0 done; 64 wrong usage; 65 the request is invalid, unsupported or too large, or the cursor \
            of a watch has expired; 66 no such record or collection; 69 daemon or backend unavailable; 70 internal \
            error or corrupt data; 73 the record exists already; 74 unknown outcome of a write: look before you send \
            it again; 75 revision mismatch, no space or timeout; 77 permission denied; 78 invalid configuration.
            """,
        version: "crudctl \(CRUDVersion.current)",
        groupedSubcommands: [
            CommandGroup(
                name: "Record",
                subcommands: [
                    Create.self, Read.self, Update.self, Upsert.self, Edit.self, Patch.self, Touch.self, Delete.self,
                    Exists.self, QueryCommand.self, Count.self, DeleteMatching.self, Batch.self,
                ]),
            CommandGroup(
                name: "Collection",
                subcommands: [
                    Collections.self, Describe.self, Watch.self, Dump.self, Load.self, Import.self, Drop.self,
                    Reindex.self,
                ]),
            CommandGroup(
                name: "Daemon",
                subcommands: [
                    Backends.self, Backup.self, Plugins.self, Ping.self, Status.self, Sessions.self, Slow.self,
                    Metrics.self,
                    Top.self,
                    Reload.self, Config.self, LogLevel.self, Whoami.self, Can.self, CallCommand.self,
                    CheckConfig.self, CheckPlugin.self,
                ]),
        ])

    @OptionGroup(title: "Global options") var options: GlobalOptions

    /// The names of all commands.
    static var commandNames: [String] {
        configuration.groupedSubcommands.flatMap(\.subcommands).map {
            $0.configuration.commandName ?? String(describing: $0).lowercased()
        }
    }

    /// Executes a command line and ends the process.
    static func execute(_ words: [String]) async -> Never {
        let line = CommandLineWords(words)
        if let error = line.unknownCommand { refuse(line, error) }
        do {
            try line.checkEncoding()
            if let options = line.optionsAlone, var prompt = Prompt(options: options) {
                try await prompt.run()
                exit(withError: nil)
            }
            var command = try await asyncParseAsRoot(line.words)
            if var daemonCommand = command as? any DaemonCommand {
                if daemonCommand.options.noPager { Pager.disable() }
                try await daemonCommand.run()
            } else {
                try command.run()
            }
            Pager.finish()
            exit(withError: nil)
        } catch let error as CRUDError {
            ErrorReport(error).print(asJSON: line.asksForJSON)
            exit(withError: ExitCode(error.exitStatus))
        } catch let error where exitCode(for: error) == .validationFailure {
            refuse(line, line.usageError(message(for: error)))
        } catch {
            Pager.finish()
            exit(withError: error)
        }
    }

    /// Ends the process because of wrong usage.
    private static func refuse(_ line: CommandLineWords, _ error: CRUDError) -> Never {
        ErrorReport(error).print(asJSON: line.asksForJSON)
        exit(withError: ExitCode.validationFailure)
    }
}
