import Glibc

/// The terminal that lines are typed on. While one is typed keys come one by one; in between the terminal is as it was.
struct PromptTerminal {
    private static let label = "crudctl> "

    private let former: termios
    /// What has been read and not been used.
    private var bytes: [UInt8] = []

    /// How long the rest of an escape sequence may take to come.
    private static let escapeMilliseconds: Int32 = 50

    /// - Returns: nil where standard input or output is not a terminal.
    init?() {
        var mode = termios()
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &mode) == 0 else {
            return nil
        }
        former = mode
    }

    func begin() {
        var mode = former
        // Single keys, none of which is echoed or makes a signal; a carriage return stays one.
        mode.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG | IEXTEN)
        mode.c_iflag &= ~tcflag_t(ICRNL | IXON)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &mode)
    }

    func restore() {
        var mode = former
        tcsetattr(STDIN_FILENO, TCSADRAIN, &mode)
    }

    /// In columns.
    var width: Int { Terminal(allowsColor: false).width ?? 80 }

    func draw(_ line: EditedLine) throws {
        let (text, cursor) = line.visible(in: max(1, width - Self.label.count))
        let steps = Self.label.count + cursor
        // Whatever has been typed or was in the history is shown, and steers nothing.
        try StandardOutput.writeComposed("\r\(Self.label)\(text.withVisibleControls)\u{1B}[K\r\u{1B}[\(steps)C".utf8)
    }

    func write(_ text: String) throws { try StandardOutput.writeComposed(text.utf8) }

    func clear() throws { try StandardOutput.writeComposed("\u{1B}[H\u{1B}[2J".utf8) }

    // MARK: Keys

    mutating func key() -> PromptKey {
        guard let first = byte() else { return .closed }
        switch first {
        case 0x1B: return PromptKey(escape: escapeSequence())
        case 0..<0x20, 0x7F: return PromptKey(control: first)
        case 0x20..<0x7F: return .character(Character(Unicode.Scalar(first)))
        default: return character(beginningWith: first)
        }
    }

    private mutating func byte() -> UInt8? {
        if bytes.isEmpty {
            var buffer = [UInt8](repeating: 0, count: 1024)
            let count = FileInput.read(STDIN_FILENO, into: &buffer)
            guard count > 0 else { return nil }
            bytes = Array(buffer[..<count])
        }
        return bytes.removeFirst()
    }

    private var hasMore: Bool {
        var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        return !bytes.isEmpty || poll(&input, 1, Self.escapeMilliseconds) > 0
    }

    private mutating func escapeSequence() -> String {
        var sequence = ""
        while hasMore, let byte = byte() {
            sequence.append(Character(Unicode.Scalar(byte)))
            // The first one introduces it, a letter or ~ ends it (ECMA-48, 5.4).
            if sequence.count > 1 ? 0x40...0x7E ~= byte : byte != UInt8(ascii: "[") && byte != UInt8(ascii: "O") {
                break
            }
        }
        return sequence
    }

    private mutating func character(beginningWith first: UInt8) -> PromptKey {
        let count = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1
        var encoded = [first]
        while encoded.count <= count, let next = byte() { encoded.append(next) }
        guard let text = String(validating: encoded, as: UTF8.self), let character = text.first,
            text.unicodeScalars.allSatisfy(\.isPrintable)
        else { return .unknown }
        return .character(character)
    }
}
