import Glibc
import Synchronization

/// Text that is longer than the screen goes to a pager, as with git and psql: `$CRUDCTL_PAGER`, else `$PAGER`, else
/// `less`, with `LESS=FRX` unless that is set. Text that is not, and text that does not go to a terminal, is printed;
/// so is everything with `--no-pager`, or if the variable is empty or `cat`.
enum Pager {
    private enum State {
        /// So much has been written, which may still fit the screen.
        case gathering([UInt8])
        /// To a pager.
        case piping(Int32, SpawnedProgram, name: String)
        /// The user has ended the pager: what follows is not read.
        case ended(SpawnedProgram, name: String)
        /// Everything goes to standard output.
        case printing
    }

    private static let state = Mutex(State.gathering([]))

    /// The status of a shell that has not found the program (POSIX, 2.8.2).
    private static let notFound: Int32 = 127

    /// Prints everything from now on, as with `--no-pager`.
    static func disable() { finish() }

    /// Whether the user has ended the pager, so that no further text is wanted.
    static var hasEnded: Bool {
        state.withLock { state in
            if case .ended = state { return true }
            return false
        }
    }

    /// Writes text that may steer a terminal.
    ///
    /// - Throws: as ``StandardOutput/write(_:)``.
    static func write(_ bytes: [UInt8]) throws {
        try state.withLock { state in
            switch state {
            case .gathering(var gathered):
                gathered += bytes
                guard !fits(gathered) else {
                    state = .gathering(gathered)
                    return
                }
                guard let piping = start() else {
                    state = .printing
                    return try StandardOutput.writeComposed(gathered)
                }
                state = piping
                send(gathered, &state)
            case .piping: send(bytes, &state)
            case .ended: break
            case .printing: try StandardOutput.writeComposed(bytes)
            }
        }
    }

    /// Prints what is left, or waits until the user has ended the pager. What follows is printed.
    static func finish() {
        let missing: String? = state.withLock { state in
            defer { state = .printing }
            switch state {
            case .gathering(let gathered):
                // Standard output has been closed: there is nothing that could be told, or to whom.
                if !gathered.isEmpty { try? StandardOutput.writeComposed(gathered) }
            case .piping(let pipe, let program, let name):
                close(pipe)
                return program.wait() == notFound << 8 ? name : nil
            case .ended(let program, let name): return program.wait() == notFound << 8 ? name : nil
            case .printing: break
            }
            return nil
        }
        guard let missing else { return }
        StandardError.write(
            "crudctl: the shell has not found the pager \"\(missing.withVisibleControls)\"; set CRUDCTL_PAGER or "
                + "PAGER, or use --no-pager\n")
    }

    /// The pager of these variables; nil: there is to be none.
    static func command(_ variable: (String) -> String?) -> String? {
        let command = variable("CRUDCTL_PAGER") ?? variable("PAGER") ?? "less"
        return command.isEmpty || command == "cat" ? nil : command
    }

    private static func fits(_ text: [UInt8]) -> Bool {
        let terminal = Terminal(allowsColor: false)
        guard StandardOutput.isTerminal, let height = terminal.height, let width = terminal.width else { return false }
        var lines = 0
        for line in text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            lines += max(1, (line.count + width - 1) / width)
        }
        // The last piece is what follows the last line; the shell's prompt takes a line too.
        return lines <= height
    }

    /// - Returns: nil where there is to be no pager, or it cannot be run.
    private static func start() -> State? {
        // The variable is terminated, and copied at once.
        let command = command { name in unsafe getenv(name).map { unsafe String(cString: $0) } }
        guard StandardOutput.isTerminal, let command, let ends = SpawnedProgram.pipe() else { return nil }
        setenv("LESS", "FRX", 0)
        // Without a shell it is noticed here that the program is missing, and the text is printed.
        let words = command == "less" ? [command] : ["sh", "-c", command]
        let program = try? SpawnedProgram(words[0], words, input: ends.output)
        close(ends.output)
        guard let program else {
            close(ends.input)
            return nil
        }
        // The keyboard's signals are the pager's; one that has ended is noticed by the next write.
        signal(SIGINT, SIG_IGN)
        signal(SIGQUIT, SIG_IGN)
        signal(SIGPIPE, SIG_IGN)
        return .piping(ends.input, program, name: command)
    }

    /// The user may end the pager before it has everything.
    private static func send(_ bytes: [UInt8], _ state: inout State) {
        guard case .piping(let pipe, let program, let name) = state, !FileOutput.write(bytes, to: pipe) else { return }
        close(pipe)
        state = .ended(program, name: name)
    }
}
