import Glibc

/// What standard output is, as far as a table needs to know.
struct Terminal {
    var isTerminal: Bool
    /// In columns; nil where lines may be as long as they like.
    var width: Int?
    var hasColor: Bool

    init(isTerminal: Bool, width: Int?, hasColor: Bool) {
        self.isTerminal = isTerminal
        self.width = width
        self.hasColor = hasColor
    }

    /// Standard output as it is.
    init(allowsColor: Bool) {
        isTerminal = isatty(STDOUT_FILENO) == 1
        var size = winsize()
        if isTerminal, unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 {
            width = Int(size.ws_col)
        }
        // By https://no-color.org: any value but the empty one.
        let isForbidden = unsafe getenv("NO_COLOR").map { unsafe $0.pointee != 0 } ?? false
        hasColor = isTerminal && allowsColor && !isForbidden
    }

    func bold(_ text: String) -> String {
        hasColor ? "\u{1B}[1m\(text)\u{1B}[0m" : text
    }
}

extension String {
    /// The columns that a terminal gives this text.
    var displayWidth: Int {
        unicodeScalars.reduce(0) { $0 + max(0, Int(wcwidth(wchar_t($1.value)))) }
    }

    /// This text cut to `width` columns, with an ellipsis where something is missing.
    func cut(to width: Int) -> String {
        guard displayWidth > width else { return self }
        var cut = ""
        var used = 1
        for character in self {
            used += String(character).displayWidth
            if used > width { break }
            cut.append(character)
        }
        return cut + "…"
    }

    /// This text with what could steer a terminal, or break a line, written as JSON would.
    var withVisibleControls: String {
        var text = ""
        for scalar in unicodeScalars {
            switch scalar.value {
            case 0x0A: text += "\\n"
            case 0x0D: text += "\\r"
            case 0x09: text += "\\t"
            // Controls, line separators, and what reorders text.
            case 0..<0x20, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
