import CRUDJSON
import CRUDModel
import CRUDWire

/// Counts the nodes of `fields`, `sort` and `filter` before anything is made of them: names of paths, operators, and
/// literals outside of lists; and their bytes.
struct QueryNodes {
    private var count = 0

    /// How many there may be together.
    static let maximum = 1000
    /// How many bytes they may have together: an event loop decodes them, and plans by them, in some milliseconds.
    static let maximumBytes = 1 << 20

    /// - Throws: `limit_exceeded`.
    static func check(_ call: borrowing Call) throws(CRUDError) {
        let bytes = [Parameter.fields, .sort, .filter].reduce(0) { $0 + (call[$1]?.count ?? 0) }
        guard bytes <= maximumBytes else {
            throw .limit(
                "query_bytes", maximumBytes,
                "`fields`, `sort` and `filter` have more than \(maximumBytes) bytes together")
        }
        var nodes = QueryNodes()
        do {
            for parameter in [Parameter.fields, .sort, .filter] {
                guard let value = call[parameter] else { continue }
                var scanner = JSONScanner(at: value.start)
                try nodes.add(&scanner, call.text.span, isPath: parameter == .fields)
            }
        } catch let error as CRUDError {
            throw error
        } catch {
            // The text has been validated before.
            throw CRUDError(.internalError, "the request has changed")
        }
    }

    /// Counts a value and what is in it.
    ///
    /// - Parameter isPath: whether strings are paths of properties.
    private mutating func add(_ scanner: inout JSONScanner, _ text: Span<UInt8>, isPath: Bool) throws {
        var isFirst = true
        switch try scanner.peekKind(text) {
        case .object:
            scanner.enter()
            while let key = try scanner.nextKey(text, isFirst: &isFirst) {
                if key.equals("property", text) {
                    try add(&scanner, text, isPath: true)
                } else if key.equals("args", text) {
                    try addArguments(&scanner, text)
                } else {
                    try take(1)
                    _ = try scanner.value(text)
                }
            }
        case .array:
            scanner.enter()
            while try scanner.nextElement(text, isFirst: &isFirst) { try add(&scanner, text, isPath: isPath) }
        case .string where isPath: try addNames(try scanner.value(text), text)
        default:
            try take(1)
            _ = try scanner.value(text)
        }
    }

    /// Counts the arguments of an operator. The values of a list have a limit of their own.
    private mutating func addArguments(_ scanner: inout JSONScanner, _ text: Span<UInt8>) throws {
        guard try scanner.peekKind(text) == .array else {
            _ = try scanner.value(text)
            return
        }
        scanner.enter()
        var isFirst = true
        while try scanner.nextElement(text, isFirst: &isFirst) {
            if try scanner.peekKind(text) == .array {
                _ = try scanner.value(text)
            } else {
                try add(&scanner, text, isPath: false)
            }
        }
    }

    /// Counts the names of a path.
    private mutating func addNames(_ path: JSONSlice, _ text: Span<UInt8>) throws {
        try take(1)
        guard !path.hasEscapes else {
            for byte in path.decodedString(text) where byte == UInt8(ascii: ".") { try take(1) }
            return
        }
        for position in path.content where text[position] == UInt8(ascii: ".") { try take(1) }
    }

    private mutating func take(_ added: Int) throws(CRUDError) {
        count += added
        guard count <= Self.maximum else {
            throw .limit(
                "query_nodes", Self.maximum,
                "`fields`, `sort` and `filter` hold more than \(Self.maximum) names, operators and literals")
        }
    }
}
