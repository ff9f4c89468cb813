import ArgumentParser
import Glibc

/// The terminal that `crudctl top` draws on: its alternate screen, with single keys instead of lines, until
/// ``restore()``.
struct TopTerminal {
    /// What the user or the system wants.
    enum Event {
        case none, quit, resized
    }

    /// ECMA-48 and xterm's private modes: alternate screen, hidden cursor, no wrapping; and back.
    private static let enter = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"
    private static let leave = "\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

    /// What the terminal was like; nil where keys do not come from a terminal.
    private let former: termios?
    private let allowsColor: Bool
    private var signals = sigset_t()

    /// Waits are cut into pieces that short, after each of which signals are looked at.
    private static let pieceMilliseconds: Int32 = 100

    /// Blocks the signals that end or resize a program, so that the terminal is restored before it ends. Threads that
    /// are started later block them too.
    ///
    /// - Throws: a usage error if standard output is not a terminal.
    init(allowsColor: Bool) throws {
        guard isatty(STDOUT_FILENO) == 1 else { throw ValidationError("top needs a terminal as its standard output.") }
        self.allowsColor = allowsColor
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH] { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        var mode = termios()
        guard isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &mode) == 0 else {
            former = nil
            return
        }
        former = mode
    }

    /// Takes the screen.
    func begin() throws {
        if var mode = former {
            // Single keys, none of which is echoed or makes a signal.
            mode.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG | IEXTEN)
            tcsetattr(STDIN_FILENO, TCSANOW, &mode)
        }
        try StandardOutput.writeComposed(Self.enter.utf8)
    }

    /// Leaves the terminal as it was.
    func restore() {
        // What has been typed ahead is the shell's.
        if var former { tcsetattr(STDIN_FILENO, TCSADRAIN, &former) }
        _ = FileOutput.write(Self.leave.utf8, to: STDOUT_FILENO)
    }

    /// Its columns and lines now.
    var size: (width: Int, height: Int) {
        let terminal = Terminal(allowsColor: false)
        return (terminal.width ?? 80, terminal.height ?? 24)
    }

    /// Replaces what is on the screen, in one write.
    ///
    /// - Parameter height: of the screen.
    func draw(_ lines: [TopScreen.Line], height: Int) throws {
        let hasColor = Terminal(allowsColor: allowsColor).hasColor
        var text = "\u{1B}[H"
        for (index, line) in lines.enumerated() {
            // A line is erased before it is written: afterwards its last column would be erased with the rest.
            text += index > 0 ? "\r\n\u{1B}[K" : "\u{1B}[K"
            for span in line {
                switch span.style {
                case .plain: text += span.text
                case .heading: text += hasColor ? "\u{1B}[1m\(span.text)\u{1B}[0m" : span.text
                case .alarm: text += hasColor ? "\u{1B}[1;31m\(span.text)\u{1B}[0m" : span.text
                }
            }
        }
        if lines.count < height { text += "\r\n\u{1B}[J" }
        try StandardOutput.writeComposed(text.utf8)
    }

    /// Waits for a key or a signal, at most until `deadline`.
    func wait(until deadline: ContinuousClock.Instant) -> Event {
        while true {
            var signals = signals
            var now = timespec()
            switch sigtimedwait(&signals, nil, &now) {
            case SIGWINCH: return .resized
            case 1...: return .quit
            default: break
            }
            let (seconds, attoseconds) = (deadline - .now).components
            let milliseconds = seconds * 1000 + attoseconds / 1_000_000_000_000_000
            guard milliseconds > 0 else { return .none }
            var keys = pollfd(fd: former == nil ? -1 : STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            guard poll(&keys, 1, min(Int32(clamping: milliseconds), Self.pieceMilliseconds)) > 0 else { continue }
            var byte: UInt8 = 0
            let count = read(STDIN_FILENO, &byte, 1)
            // Another program may have read what there was.
            if count < 0, errno == EAGAIN || errno == EINTR { continue }
            guard count == 1 else { return .quit }
            // Ctrl-C and Ctrl-\ make no signals here.
            if [UInt8(ascii: "q"), UInt8(ascii: "Q"), 0x03, 0x1C].contains(byte) { return .quit }
        }
    }
}
