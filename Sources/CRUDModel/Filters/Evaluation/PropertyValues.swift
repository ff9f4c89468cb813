import CRUDJSON

/// What has been made of an item's properties while it is evaluated, each at most once: decoding a string, reading a
/// number or scanning an array takes time that is linear in it, and many conditions may be about one property.
///
/// Properties are their indexes in the evaluator's finder.
struct PropertyValues {
    /// For each property that an `a_contains` is about: the elements that are looked for.
    private let wanted: [Int: LiteralSet]
    private var texts: [Int: [UInt8]] = [:]
    private var numbers: [Int: ExactNumber] = [:]
    private var elements: [Int: [Bool]] = [:]

    /// Up to so many bytes it is cheaper to read a number again.
    private static let shortNumber = 32

    init(_ wanted: [Int: LiteralSet]) {
        self.wanted = wanted
    }

    /// Another item is about to be evaluated.
    mutating func removeAll() {
        if !texts.isEmpty { texts.removeAll() }
        if !numbers.isEmpty { numbers.removeAll() }
        if !elements.isEmpty { elements.removeAll() }
    }

    /// The value of a string that has escapes.
    mutating func text(of path: Int, _ value: JSONSlice, _ item: Span<UInt8>, _ work: inout Work) -> [UInt8] {
        if let text = texts[path] { return text }
        let text = value.decodedString(item, &work)
        texts[path] = text
        return text
    }

    mutating func number(
        of path: Int, _ value: JSONSlice, _ item: Span<UInt8>, _ work: inout Work
    ) -> ExactNumber {
        if value.count <= Self.shortNumber { return ExactNumber(value, item) }
        if let number = numbers[path] { return number }
        let number = ExactNumber(value, item, &work)
        numbers[path] = number
        return number
    }

    /// For each element that is looked for in an array, whether it is there.
    mutating func elements(
        of path: Int, _ value: JSONSlice, _ item: Span<UInt8>, _ work: inout Work
    ) throws(JSONSyntaxError) -> [Bool] {
        if let found = elements[path] { return found }
        guard let wanted = wanted[path] else { return [] }
        var found = [Bool](repeating: false, count: wanted.count)
        var missing = wanted.count
        var scanner = JSONScanner(at: value.start)
        _ = try scanner.peekKind(item, &work)
        scanner.enter()
        var isFirst = true
        while missing > 0, try scanner.nextElement(item, isFirst: &isFirst, &work) {
            let element = try scanner.value(item, &work)
            guard let index = wanted.index(of: element, item, &work), !found[index] else { continue }
            found[index] = true
            missing -= 1
        }
        elements[path] = found
        return found
    }
}
