import CRUDConfiguration
import CRUDModel
import CRUDServer
import Glibc

func print(_ lines: [String], to descriptor: CInt) {
    let text = Array(lines.map { $0 + "\n" }.joined().utf8)
    if text.isEmpty { return }
    _ = text.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
}

/// Executes the command line and returns the exit status, one of sysexits.h.
func run() -> Int32 {
    do {
        let arguments = try Arguments(CommandLine.arguments.dropFirst())
        let stateDirectory = getenv("STATE_DIRECTORY").map { ["STATE_DIRECTORY": String(cString: $0)] } ?? [:]
        let load: @Sendable () throws(InvalidConfiguration) -> Configuration = {
            () throws(InvalidConfiguration) in
            try Configuration.load(
                path: arguments.configuration, environment: stateDirectory, mustBeTrusted: !arguments.checksNamedFile)
        }
        switch arguments.task {
        case .help: print(Arguments.help, terminator: "")
        case .version: print("crudd \(CRUDVersion.current)")
        case .check: print(try Daemon.check(load, runsCommands: arguments.runsCommands), to: STDERR_FILENO)
        case .serve: try Daemon(manager: ServiceManager(), load: load).run(force: arguments.force, move: arguments.move)
        }
        return EXIT_SUCCESS
    } catch let error as UsageError {
        print(["crudd: \(error.message)", "Try crudd --help."], to: STDERR_FILENO)
        return 64  // EX_USAGE
    } catch let invalid as InvalidConfiguration {
        print(invalid.diagnostics.map(\.description), to: STDERR_FILENO)
        return (invalid.kind == .system ? StartFailure.Status.system : .configuration).rawValue
    } catch let failure as StartFailure {
        print(failure.lines, to: STDERR_FILENO)
        return failure.status.rawValue
    } catch {
        print(["crudd: \(error)"], to: STDERR_FILENO)
        return 70  // EX_SOFTWARE
    }
}

exit(run())
