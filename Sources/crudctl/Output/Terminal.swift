import Glibc

/// The properties of an output that decide how people see it.
struct Terminal {
    var isTerminal: Bool
    /// In columns; nil if lines may have any length.
    var width: Int?
    /// In lines; nil if it is not known.
    var height: Int?
    var hasColor: Bool

    init(isTerminal: Bool, width: Int?, hasColor: Bool) {
        self.isTerminal = isTerminal
        self.width = width
        self.hasColor = hasColor
    }

    /// The properties of the actual standard output, or of another file.
    init(of file: Int32 = STDOUT_FILENO, allowsColor: Bool) {
        isTerminal = isatty(file) == 1
        var size = winsize()
        // This request fills in a winsize.
        if isTerminal, unsafe ioctl(file, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 {
            width = Int(size.ws_col)
            height = size.ws_row > 0 ? Int(size.ws_row) : nil
        }
        // https://no-color.org: any value except the empty one, whose first byte is the terminating 0.
        let isForbidden = unsafe getenv("NO_COLOR").map { unsafe $0.pointee != 0 } ?? false
        hasColor = isTerminal && allowsColor && !isForbidden
    }

    func bold(_ text: String) -> String {
        hasColor ? "\u{1B}[1m\(text)\u{1B}[0m" : text
    }
}

extension String {
    /// The columns that this text takes on a terminal.
    var displayWidth: Int { unicodeScalars.reduce(0) { $0 + $1.displayWidth } }

    /// This text cut to `width` columns, with an ellipsis if it was cut.
    func cut(to width: Int) -> String {
        guard displayWidth > width else { return self }
        guard width > 0 else { return "" }
        var cut = ""
        var used = 1
        for character in self {
            used += String(character).displayWidth
            if used > width { break }
            cut.append(character)
        }
        return cut + "…"
    }
}

extension Unicode.Scalar {
    /// The columns that this scalar takes on a terminal: 2 for emoji and for those that Unicode's annex 11 calls wide,
    /// 0 for combining marks.
    fileprivate var displayWidth: Int {
        switch value {
        case 0x20..<0x7F: return 1
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD:
            return 2
        default: break
        }
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: return properties.isEmojiPresentation ? 2 : 1
        }
    }
}
