import CRUDJSON
import CRUDModel

/// Reads an XML property list, ours or another tool's.
struct XMLPropertyListReader {
    private enum Element: String, CaseIterable {
        case dict, array, key, string, integer, real
        case `true`, `false`
        case date, data, plist
    }

    /// The elements by their names, packed into a number; there is none of more than eight bytes.
    private static let elements = Element.allCases.map { element in
        (name: element.rawValue.utf8.reduce(0) { $0 << 8 | UInt64($1) }, element: element)
    }

    /// A `dict` or `array` that has begun.
    private enum Level {
        /// Whether a key stands before what comes next.
        case dictionary(hasKey: Bool)
        case array
    }

    private var scanner = XMLScanner()
    private var levels: [Level] = []

    /// - Throws: `corrupt`, and what the writer throws.
    mutating func read(
        _ document: Span<UInt8>, into item: inout ItemWriter, _ work: inout Work
    ) throws(CRUDError) {
        try scanner.begin(document, &work)
        guard case .start(let element, false) = try markup(document, &work), element == .plist else {
            throw .corrupt("it is not an XML property list")
        }
        repeat {
            switch try markup(document, &work) {
            case .start(let element, let isEmpty): try begin(element, isEmpty: isEmpty, document, &item, &work)
            case .end(let element): try end(element, &item)
            case .endOfDocument: throw .corrupt("its XML ends too early")
            }
        } while !levels.isEmpty
        guard case .end(.plist) = try markup(document, &work), case .endOfDocument = try markup(document, &work) else {
            throw .corrupt("its property list has more than one value")
        }
    }

    // MARK: Elements

    private enum Markup {
        case start(Element, isEmpty: Bool)
        case end(Element)
        case endOfDocument
    }

    /// The next tag, with nothing but white space before it.
    private mutating func markup(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) -> Markup {
        let markup = try tag(document, &work)
        guard scanner.isBlank else { throw .corrupt("there is text between the elements of its XML") }
        return markup
    }

    private mutating func tag(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) -> Markup {
        switch try scanner.next(document, &work) {
        case .start(let name, let isEmpty): .start(try element(named: name, document), isEmpty: isEmpty)
        case .end(let name): .end(try element(named: name, document))
        case .endOfDocument: .endOfDocument
        }
    }

    private func element(named name: Range<Int>, _ document: Span<UInt8>) throws(CRUDError) -> Element {
        var packed: UInt64 = 0
        for index in name.prefix(8) { packed = packed << 8 | UInt64(document[index]) }
        if name.count <= 8 {
            for known in Self.elements where known.name == packed { return known.element }
        }
        throw .corrupt("its XML has an element that property lists do not")
    }

    private mutating func begin(
        _ element: Element, isEmpty: Bool, _ document: Span<UInt8>, _ item: inout ItemWriter, _ work: inout Work
    ) throws(CRUDError) {
        if element == .key { return try key(isEmpty: isEmpty, document, &item, &work) }
        if case .dictionary(let hasKey) = levels.last {
            guard hasKey else { throw .corrupt("a value in its XML has no key") }
            levels[levels.count - 1] = .dictionary(hasKey: false)
        }
        switch element {
        case .dict:
            try item.beginDictionary()
            if isEmpty { item.endDictionary() } else { levels.append(.dictionary(hasKey: false)) }
        case .array:
            try item.beginArray()
            if isEmpty { item.endArray() } else { levels.append(.array) }
        case .date, .data: throw .corrupt("JSON cannot represent a <\(element.rawValue)>")
        case .plist, .key: throw .corrupt("a <\(element.rawValue)> stands in its XML where a value must")
        case .string, .integer, .real, .true, .false:
            if !isEmpty { try content(of: element, document, &work) }
            try scalar(element, isEmpty: isEmpty, &item, &work)
        }
    }

    private mutating func end(_ element: Element, _ item: inout ItemWriter) throws(CRUDError) {
        switch (levels.popLast(), element) {
        case (.dictionary(hasKey: false), .dict): item.endDictionary()
        case (.array, .array): item.endArray()
        default: throw .corrupt("</\(element.rawValue)> in its XML has no start tag")
        }
    }

    private mutating func key(
        isEmpty: Bool, _ document: Span<UInt8>, _ item: inout ItemWriter, _ work: inout Work
    ) throws(CRUDError) {
        guard case .dictionary(hasKey: false) = levels.last else {
            throw .corrupt("a <key> in its XML is out of place")
        }
        levels[levels.count - 1] = .dictionary(hasKey: true)
        if !isEmpty { try content(of: .key, document, &work) }
        let name = isEmpty ? [] : scanner.characters
        try item.key(name.span, &work)
    }

    /// Continues to an element's end tag, so that the scanner has its text.
    private mutating func content(
        of element: Element, _ document: Span<UInt8>, _ work: inout Work
    ) throws(CRUDError) {
        guard case .end(element) = try tag(document, &work) else {
            throw .corrupt("a <\(element.rawValue)> in its XML contains more than text")
        }
    }

    // MARK: Values

    private func scalar(
        _ element: Element, isEmpty: Bool, _ item: inout ItemWriter, _ work: inout Work
    ) throws(CRUDError) {
        if element == .string {
            let text = isEmpty ? [] : scanner.characters
            return try item.string(text.span, &work)
        }
        let text = isEmpty ? [] : trimmedCharacters
        // A number is read in one step.
        guard work.take(text.count) else { return }
        switch element {
        case .integer: try item.integer(Self.integer(text))
        case .real: try item.real(Self.real(text))
        default:
            guard text.isEmpty else { throw .corrupt("there is text in a <\(element.rawValue)>") }
            try item.boolean(element == .true)
        }
    }

    /// The text before the last tag without white space around it.
    private var trimmedCharacters: ArraySlice<UInt8> {
        var text = scanner.characters[...]
        while let byte = text.first, XMLCharacter.isWhiteSpace(byte) { text = text.dropFirst() }
        while let byte = text.last, XMLCharacter.isWhiteSpace(byte) { text = text.dropLast() }
        return text
    }

    /// Decimal, or hexadecimal behind `0x`, with or without a sign.
    private static func integer(_ text: ArraySlice<UInt8>) throws(CRUDError) -> Int128 {
        var digits = text
        let isNegative = digits.first == UInt8(ascii: "-")
        if isNegative || digits.first == UInt8(ascii: "+") { digits = digits.dropFirst() }
        var radix: Int128 = 10
        if digits.starts(with: "0x".utf8) || digits.starts(with: "0X".utf8) {
            digits = digits.dropFirst(2)
            radix = 16
        }
        var magnitude: Int128 = 0
        for byte in digits {
            guard let digit = hexDigit(byte), digit < radix, magnitude < 1 << 120 else {
                throw .corrupt("an <integer> is not an integer, or is too large")
            }
            magnitude = magnitude * radix + Int128(digit)
        }
        guard !digits.isEmpty else { throw .corrupt("an <integer> is empty") }
        return isNegative ? -magnitude : magnitude
    }

    private static func real(_ text: ArraySlice<UInt8>) throws(CRUDError) -> Double {
        // Swift reads hexadecimal numbers and the names of infinities and NaNs as well.
        guard text.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || "+-.eE".utf8.contains($0) }),
            let value = Double(String(decoding: text, as: UTF8.self))
        else { throw .corrupt("a <real> is not a number that JSON can represent") }
        return value
    }
}
