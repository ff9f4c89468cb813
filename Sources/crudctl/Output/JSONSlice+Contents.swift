import CRUDJSON

/// Reading JSON text that has been checked, with no more in memory than where a value is.
extension JSONSlice {
    var isContainer: Bool { kind == .array || kind == .object }

    /// Calls `body` with each element of an array.
    func forEachElement(_ text: Span<UInt8>, _ body: (JSONSlice) throws -> Void) throws {
        guard kind == .array else { return }
        var scanner = JSONScanner(at: start)
        scanner.enter()
        var isFirst = true
        while try scanner.nextElement(text, isFirst: &isFirst) { try body(scanner.value(text)) }
    }

    /// Calls `body` with each member of an object, in the order of the text; members may be repeated.
    func forEachMember(_ text: Span<UInt8>, _ body: (_ key: JSONSlice, _ value: JSONSlice) throws -> Void) throws {
        guard kind == .object else { return }
        var scanner = JSONScanner(at: start)
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(text, isFirst: &isFirst) { try body(key, scanner.value(text)) }
    }

    /// Whether it has no element and no member.
    func isEmpty(_ text: Span<UInt8>) throws -> Bool {
        var scanner = JSONScanner(at: start)
        scanner.enter()
        var isFirst = true
        switch kind {
        case .array: return try !scanner.nextElement(text, isFirst: &isFirst)
        case .object: return try scanner.nextKey(text, isFirst: &isFirst) == nil
        default: return false
        }
    }
}
