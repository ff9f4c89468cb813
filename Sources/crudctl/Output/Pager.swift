import Glibc
import Synchronization

/// Text that is longer than the screen goes to a pager, as with git and psql: `$PAGER`, or `less -FRX`. Text that is
/// not, and text that does not go to a terminal, is printed.
enum Pager {
    private enum State {
        /// So much has been written, which may still fit the screen.
        case gathering([UInt8])
        /// To a pager.
        case piping(Int32, SpawnedProgram)
        /// Everything goes to standard output.
        case printing
    }

    private static let state = Mutex(State.gathering([]))

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
                if let (pipe, program) = start() {
                    state = .piping(pipe, program)
                    send(gathered, to: pipe)
                } else {
                    state = .printing
                    try StandardOutput.writeComposed(gathered)
                }
            case .piping(let pipe, _): send(bytes, to: pipe)
            case .printing: try StandardOutput.writeComposed(bytes)
            }
        }
    }

    /// Prints what is left, or waits until the user has ended the pager. What follows is printed.
    static func finish() {
        state.withLock { state in
            switch state {
            case .gathering(let gathered):
                // Standard output has been closed: there is nothing that could be told, or to whom.
                if !gathered.isEmpty { try? StandardOutput.writeComposed(gathered) }
            case .piping(let pipe, let program):
                close(pipe)
                _ = program.wait()
            case .printing: break
            }
            state = .printing
        }
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
    private static func start() -> (Int32, SpawnedProgram)? {
        guard StandardOutput.isTerminal else { return nil }
        let pager = unsafe getenv("PAGER").map { unsafe String(cString: $0) }
        if pager == "" || pager == "cat" { return nil }
        guard let ends = SpawnedProgram.pipe() else { return nil }
        setenv("LESS", "FRX", 0)
        let words = pager.map { ["sh", "-c", $0] } ?? ["less"]
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
        return (ends.input, program)
    }

    /// The user may have ended the pager before it has everything.
    private static func send(_ bytes: [UInt8], to pipe: Int32) { _ = FileOutput.write(bytes, to: pipe) }
}
