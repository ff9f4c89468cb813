import CRUDJSON

/// Writes JSON values again: on one line, or indented. Numbers keep their digits; strings have no more escapes than
/// they need.
struct JSONPrinter {
    /// The column of the value's first line; nil: everything is on one line.
    let margin: Int?

    /// Deeper than any daemon allows, and not too deep for the stack. What nests deeper is written as it is.
    static let maximumDepth = 1100

    private static let step = 2

    init(margin: Int? = nil) {
        self.margin = margin
    }

    /// Writes a value, piece by piece.
    func print(_ value: JSONSlice, _ text: Span<UInt8>, _ write: (Span<UInt8>) throws -> Void) throws {
        guard value.depth <= Self.maximumDepth else { return try write(text.extracting(value.range)) }
        var scanner = JSONScanner(at: value.start)
        try print(&scanner, text, margin ?? 0, write)
    }

    private func print(
        _ scanner: inout JSONScanner, _ text: Span<UInt8>, _ column: Int, _ write: (Span<UInt8>) throws -> Void
    ) throws {
        var isFirst = true
        switch try scanner.peekKind(text) {
        case .array:
            scanner.enter()
            var isEmpty = true
            while try scanner.nextElement(text, isFirst: &isFirst) {
                try begin(isEmpty ? "[" : ",", column + Self.step, write)
                isEmpty = false
                try print(&scanner, text, column + Self.step, write)
            }
            try end(isEmpty ? "[]" : "]", isEmpty, column, write)
        case .object:
            scanner.enter()
            var isEmpty = true
            while let key = try scanner.nextKey(text, isFirst: &isFirst) {
                try begin(isEmpty ? "{" : ",", column + Self.step, write)
                isEmpty = false
                try Self.scalar(key, text, write)
                try Self.write(margin == nil ? ":" : ": ", write)
                try print(&scanner, text, column + Self.step, write)
            }
            try end(isEmpty ? "{}" : "}", isEmpty, column, write)
        default:
            try Self.scalar(scanner.value(text), text, write)
        }
    }

    private func begin(_ sign: String, _ column: Int, _ write: (Span<UInt8>) throws -> Void) throws {
        try Self.write(sign, write)
        if margin != nil { try Self.write("\n" + String(repeating: " ", count: column), write) }
    }

    private func end(
        _ sign: String, _ isEmpty: Bool, _ column: Int, _ write: (Span<UInt8>) throws -> Void
    ) throws {
        if margin != nil, !isEmpty { try Self.write("\n" + String(repeating: " ", count: column), write) }
        try Self.write(sign, write)
    }

    private static func scalar(
        _ value: JSONSlice, _ text: Span<UInt8>, _ write: (Span<UInt8>) throws -> Void
    ) throws {
        guard value.hasEscapes else { return try write(text.extracting(value.range)) }
        var bytes: [UInt8] = []
        bytes.appendJSONString(value.decodedString(text))
        try write(bytes.span)
    }

    private static func write(_ string: String, _ write: (Span<UInt8>) throws -> Void) throws {
        try write(Array(string.utf8).span)
    }

    /// The value on one line.
    static func line(_ value: JSONSlice, _ text: Span<UInt8>) throws -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(value.count)
        try JSONPrinter().print(value, text) { line.append($0) }
        return line
    }
}
