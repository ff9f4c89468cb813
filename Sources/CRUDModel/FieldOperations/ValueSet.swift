import CRUDJSON

/// The elements of an array, each once, by their values: finds which one equals another value in time that is linear in
/// that value.
///
/// Scalars are equal as in filters (``ExactNumber``, text by code point); null equals null, an array one with equal
/// elements, an object one with equal members in any order. Each value is written as a key, so that equal values, and
/// no others, have the same.
struct ValueSet: ~Copyable {
    /// The elements, in their order, without those that equal one before them.
    private(set) var values: [JSONSlice] = []
    private var keys = NameTable()
    /// A bit for each kind that a value has.
    private var kinds: UInt8 = 0
    /// How deeply they nest. What nests deeper equals none of them; so the recursion over a value has its bound.
    private var depth = 0
    private var key: [UInt8] = []

    /// - Parameter array: an array that a ``JSONScanner`` has found in the text.
    /// - Throws: JSONSyntaxError if the text is not valid JSON.
    init(elementsOf array: JSONSlice, _ text: Span<UInt8>, _ work: inout Work) throws(JSONSyntaxError) {
        var scanner = JSONScanner(at: array.start)
        scanner.enter()
        var isFirst = true
        while try scanner.nextElement(text, isFirst: &isFirst, &work) {
            let value = try scanner.value(text, &work)
            try write(value, text, &work)
            let key = key
            guard keys.insert(0..<key.count, key.span, of: 0, &work).isNew else { continue }
            values.append(value)
            kinds |= 1 << value.kind.rawValue
            depth = max(depth, value.depth)
        }
    }

    /// The index in ``values`` of the one that equals a value; nil if there is none.
    ///
    /// - Throws: JSONSyntaxError if the text is not valid JSON.
    mutating func index(
        of value: JSONSlice, _ text: Span<UInt8>, _ work: inout Work
    ) throws(JSONSyntaxError) -> Int? {
        guard kinds & 1 << value.kind.rawValue != 0, value.depth <= depth else { return nil }
        try write(value, text, &work)
        let key = key
        return keys.index(of: 0..<key.count, key.span, in: 0, &work)
    }

    private mutating func write(
        _ value: JSONSlice, _ text: Span<UInt8>, _ work: inout Work
    ) throws(JSONSyntaxError) {
        key.removeAll(keepingCapacity: true)
        try Self.append(value, text, to: &key, &work)
    }

    // MARK: Keys

    /// Ends the elements of an array and the members of an object; no kind has this number.
    private static let end: UInt8 = 0xFF

    private static func append(
        _ value: JSONSlice, _ text: Span<UInt8>, to key: inout [UInt8], _ work: inout Work
    ) throws(JSONSyntaxError) {
        key.append(value.kind == .false ? JSONKind.true.rawValue : value.kind.rawValue)
        switch value.kind {
        case .null: break
        case .true, .false: key.append(value.kind == .true ? 1 : 0)
        case .number: append(ExactNumber(value, text, &work), to: &key)
        case .string: append(string: value, text, to: &key, &work)
        case .array:
            var scanner = JSONScanner(at: value.start)
            scanner.enter()
            var isFirst = true
            while try scanner.nextElement(text, isFirst: &isFirst, &work) {
                try append(try scanner.value(text, &work), text, to: &key, &work)
            }
            key.append(end)
        case .object:
            for member in try members(value, text, &work) {
                append(UInt64(member.name.count), to: &key)
                key += member.name
                try append(member.value, text, to: &key, &work)
            }
            key.append(end)
        }
    }

    private static func append(_ number: ExactNumber, to key: inout [UInt8]) {
        switch number {
        case .integer(let integer):
            key.append(0)
            append(UInt64(bitPattern: integer), to: &key)
        case .binary64(let value):
            key.append(1)
            append(value.bitPattern, to: &key)
        }
    }

    /// A length and the text: no other sequence of strings has the same bytes.
    private static func append(
        string: JSONSlice, _ text: Span<UInt8>, to key: inout [UInt8], _ work: inout Work
    ) {
        let start = key.count
        append(0, to: &key)
        if string.hasEscapes {
            string.appendDecodedString(text, to: &key, &work)
        } else {
            key.append(text.extracting(string.content))
        }
        var count = UInt64(key.count - start - 8)
        for index in start..<start + 8 {
            key[index] = UInt8(truncatingIfNeeded: count)
            count >>= 8
        }
    }

    private static func append(_ word: UInt64, to key: inout [UInt8]) {
        for shift in stride(from: 0, to: 64, by: 8) { key.append(UInt8(truncatingIfNeeded: word >> UInt64(shift))) }
    }

    /// The members of an object by name; of those with the same name the last one.
    private static func members(
        _ object: JSONSlice, _ text: Span<UInt8>, _ work: inout Work
    ) throws(JSONSyntaxError) -> [(name: [UInt8], value: JSONSlice)] {
        var members: [(name: [UInt8], value: JSONSlice)] = []
        var scanner = JSONScanner(at: object.start)
        scanner.enter()
        var isFirst = true
        while let name = try scanner.nextKey(text, isFirst: &isFirst, &work) {
            members.append((name.decodedString(text, &work), try scanner.value(text, &work)))
        }
        members.sort(&work) { left, right, work in
            _ = work.take(min(left.name.count, right.name.count) + 8)
            return left.name == right.name
                ? left.value.start < right.value.start : left.name.lexicographicallyPrecedes(right.name)
        }
        var last: [(name: [UInt8], value: JSONSlice)] = []
        for member in members {
            if last.last?.name == member.name { last.removeLast() }
            last.append(member)
        }
        return last
    }
}
