import CRUDJSON

/// Writes JSON values as YAML 1.2 in block style (https://yaml.org/spec/1.2.2/).
///
/// A string is plain only if no schema could interpret it as anything else; any other is double-quoted, a style in
/// which YAML has JSON's escapes.
struct YAMLWriter {
    let output: OutputBuffer

    func write(_ value: JSONSlice, _ text: Span<UInt8>) throws {
        guard value.depth <= JSONPrinter.maximumDepth else {
            try output.append(text.extracting(value.range))
            return try output.append("\n")
        }
        var scanner = JSONScanner(at: value.start)
        try write(&scanner, text, indent: 0, isBehindKey: false)
    }

    /// Writes a value and a line end.
    ///
    /// - Parameter isBehindKey: whether it follows a colon; else it follows what its first line begins with.
    private func write(
        _ scanner: inout JSONScanner, _ text: Span<UInt8>, indent: Int, isBehindKey: Bool
    ) throws {
        let margin = String(repeating: " ", count: indent)
        let first = isBehindKey ? "\n" + margin : ""
        let space = isBehindKey ? " " : ""
        var isFirst = true
        var isEmpty = true
        switch try scanner.peekKind(text) {
        case .array:
            scanner.enter()
            while try scanner.nextElement(text, isFirst: &isFirst) {
                try output.append((isEmpty ? first : margin) + "- ")
                isEmpty = false
                try write(&scanner, text, indent: indent + 2, isBehindKey: false)
            }
            if isEmpty { try output.append(space + "[]\n") }
        case .object:
            scanner.enter()
            while let name = try scanner.nextKey(text, isFirst: &isFirst) {
                let key = Self.string(name, text)
                try output.append(isEmpty ? first : margin)
                isEmpty = false
                // A key with its colon on the same line may have at most 1024 characters.
                try output.append(key.unicodeScalars.count <= 1024 ? "\(key):" : "? \(key)\n\(margin):")
                try write(&scanner, text, indent: indent + 2, isBehindKey: true)
            }
            if isEmpty { try output.append(space + "{}\n") }
        case .string:
            try output.append(space + Self.string(scanner.value(text), text) + "\n")
        default:
            try output.append(space)
            try output.append(text.extracting(scanner.value(text).range))
            try output.append("\n")
        }
    }

    private static func string(_ slice: JSONSlice, _ text: Span<UInt8>) -> String {
        let bytes = slice.decodedString(text)
        let string = String(decoding: bytes, as: UTF8.self)
        return isPlain(string) ? string : quoted(bytes)
    }

    /// Words that some version of YAML does not interpret as strings.
    private static let words: Set<String> = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"]

    private static func isPlain(_ string: String) -> Bool {
        guard let first = string.utf8.first, isLetter(first), string.utf8.last != UInt8(ascii: " ") else {
            return false
        }
        let hasPlainBytes = string.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "/"), UInt8(ascii: "@"), UInt8(ascii: "+"), UInt8(ascii: " "):
                true
            default: isLetter(byte)
            }
        }
        return hasPlainBytes && !words.contains(string.lowercased())
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- UInt8(ascii: "a") < 26
    }

    /// The JSON string, with those characters escaped too that YAML does not allow or that are not printable.
    private static func quoted(_ bytes: [UInt8]) -> String {
        var json: [UInt8] = []
        json.appendJSONString(bytes)
        var text = ""
        for scalar in String(decoding: json, as: UTF8.self).unicodeScalars {
            if scalar.isPrintable, scalar.value & 0xFFFE != 0xFFFE {
                text.unicodeScalars.append(scalar)
            } else {
                let digits = String(scalar.value, radix: 16)
                let width = scalar.value > 0xFFFF ? 8 : 4
                text += (width == 8 ? "\\U" : "\\u") + String(repeating: "0", count: width - digits.count) + digits
            }
        }
        return text
    }
}
