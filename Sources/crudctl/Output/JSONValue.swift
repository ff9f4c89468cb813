import CRUDJSON

/// A parsed JSON value, to be printed in another form. Numbers keep their text.
enum JSONValue {
    case null
    case bool(Bool)
    /// The text of a number, or of a value that nests too deeply to be parsed.
    case verbatim(String)
    case string(String)
    case array([JSONValue])
    /// In the order of the text; members may be repeated.
    case object([(key: String, value: JSONValue)])

    /// Deeper than any daemon allows, and not too deep for the stack.
    private static let maximumDepth = 1100

    /// Parses `text`, which is JSON.
    init(_ text: [UInt8]) throws(JSONSyntaxError) {
        var scanner = JSONScanner()
        let slice = try scanner.value(text.span)
        scanner.reset(at: slice.start)
        self =
            slice.depth <= Self.maximumDepth
            ? try Self.value(&scanner, text.span) : .verbatim(slice.string(in: text.span))
    }

    private static func value(_ scanner: inout JSONScanner, _ text: Span<UInt8>) throws(JSONSyntaxError) -> JSONValue {
        var isFirst = true
        switch try scanner.peekKind(text) {
        case .null:
            _ = try scanner.value(text)
            return .null
        case .true, .false:
            return .bool(try scanner.value(text).kind == .true)
        case .number:
            return .verbatim(try scanner.value(text).string(in: text))
        case .string:
            return .string(String(decoding: try scanner.value(text).decodedString(text), as: UTF8.self))
        case .array:
            var elements: [JSONValue] = []
            scanner.enter()
            while try scanner.nextElement(text, isFirst: &isFirst) { elements.append(try value(&scanner, text)) }
            return .array(elements)
        case .object:
            var members: [(key: String, value: JSONValue)] = []
            scanner.enter()
            while let key = try scanner.nextKey(text, isFirst: &isFirst) {
                let name = String(decoding: key.decodedString(text), as: UTF8.self)
                members.append((name, try value(&scanner, text)))
            }
            return .object(members)
        }
    }

    var isContainer: Bool {
        switch self {
        case .array, .object: true
        default: false
        }
    }

    var isEmptyContainer: Bool {
        switch self {
        case .array(let elements): elements.isEmpty
        case .object(let members): members.isEmpty
        default: false
        }
    }

    /// JSON text on one line.
    var compact: String {
        switch self {
        case .null: "null"
        case .bool(let bool): bool ? "true" : "false"
        case .verbatim(let text): text
        case .string(let string): Self.quoted(string)
        case .array(let elements): "[" + elements.map(\.compact).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { Self.quoted($0.key) + ":" + $0.value.compact }.joined(separator: ",") + "}"
        }
    }

    /// The lines of indented JSON text.
    var indentedLines: [String] {
        switch self {
        case .array(let elements) where !elements.isEmpty:
            return ["["] + Self.indented(elements.map(\.indentedLines)) + ["]"]
        case .object(let members) where !members.isEmpty:
            let lines = members.map { member in
                var lines = member.value.indentedLines
                lines[0] = Self.quoted(member.key) + ": " + lines[0]
                return lines
            }
            return ["{"] + Self.indented(lines) + ["}"]
        default:
            return [compact]
        }
    }

    private static func indented(_ parts: [[String]]) -> [String] {
        parts.enumerated().flatMap { index, lines in
            var lines = lines.map { "  " + $0 }
            if index < parts.count - 1 { lines[lines.count - 1] += "," }
            return lines
        }
    }

    static func quoted(_ string: String) -> String {
        var bytes: [UInt8] = []
        bytes.appendJSONString(string.utf8)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension JSONSlice {
    fileprivate func string(in text: Span<UInt8>) -> String {
        // The text is copied before the closure returns.
        text.extracting(range).withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    }
}
