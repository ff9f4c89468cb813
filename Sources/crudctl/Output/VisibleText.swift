import CRUDJSON

extension Unicode.Scalar {
    /// Whether a terminal shows this as a character and does nothing else: controls can steer it, and format characters
    /// hide or reorder what is beside them (https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing).
    var isPrintable: Bool {
        switch value {
        case 0x20..<0x7F: return true
        // Joiners, which scripts and emoji need.
        case 0x200C, 0x200D: return true
        default: break
        }
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: return false
        default: return true
        }
    }

    /// As an escape of JSON, such as `\u009b`.
    var escape: String {
        switch value {
        case 0x0A: "\\n"
        case 0x0D: "\\r"
        case 0x09: "\\t"
        default:
            UTF16.encode(self).map { units in
                units.map { "\\u" + String(UInt32($0) | 0x1_0000, radix: 16).dropFirst() }.joined()
            } ?? ""
        }
    }
}

extension String {
    /// This text, with characters that could steer a terminal or break a line escaped as in JSON.
    var withVisibleControls: String {
        var bytes: [UInt8] = []
        bytes.appendVisible(Array(utf8).span)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension [UInt8] {
    /// Appends UTF-8 text with whatever is not printable escaped as in JSON: text that was valid JSON still is, and has
    /// the same value.
    ///
    /// - Parameter keepsLines: whether line ends and tabs stay.
    mutating func appendVisible(_ text: Span<UInt8>, keepsLines: Bool = false) {
        var index = 0
        while index < text.count {
            let start = index
            while index < text.count, Self.isPlain(text[index], keepsLines) { index += 1 }
            if index > start { append(text.extracting(start..<index)) }
            let other = index
            while index < text.count, !Self.isPlain(text[index], keepsLines) { index += 1 }
            guard index > other else { continue }
            // Invalid bytes become U+FFFD.
            let run = text.extracting(other..<index).withUnsafeBufferPointer {
                // The text is copied before the closure returns.
                unsafe String(decoding: $0, as: UTF8.self)
            }
            for scalar in run.unicodeScalars {
                append(contentsOf: (scalar.isPrintable ? String(scalar) : scalar.escape).utf8)
            }
        }
    }

    /// A byte that is a character by itself, and printable.
    private static func isPlain(_ byte: UInt8, _ keepsLines: Bool) -> Bool {
        0x20..<0x7F ~= byte || keepsLines && (byte == 0x0A || byte == 0x09)
    }
}
