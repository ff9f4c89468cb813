/// A collection's name, or a glob over names: `*` matches any run of code points, `?` matches one, and `\` makes the
/// `*`, `?` or `\` behind it stand for itself.
///
/// Names are compared by code point, which for UTF-8 is byte by byte; only `?` and `*` need to know where a code point
/// ends. A failed match is retried from the last `*` only (an earlier one cannot help), so that the time is at most
/// that of pattern times name, both of which are short.
package struct CollectionPattern: Sendable, Equatable {
    private enum Element: Sendable, Equatable {
        case byte(UInt8)
        case one
        case run
    }

    /// Why a text is not a pattern.
    package struct SyntaxError: Error {
        package let reason: String
    }

    /// As it is written in the configuration.
    package let text: String
    /// False for a plain name.
    package let isGlob: Bool
    /// How many code points match only themselves. Of two globs that match, the one with more of them wins.
    package let literalCodePoints: Int
    /// The name itself where this is not a glob; otherwise the literals of the glob.
    package let literal: [UInt8]
    private let elements: [Element]

    /// - Throws: ``SyntaxError`` for an empty text, a stray `\`, or literals that a collection's name cannot contain.
    package init(_ bytes: [UInt8]) throws(SyntaxError) {
        var elements: [Element] = []
        var literal: [UInt8] = []
        var isEscaped = false
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\\"), UInt8(ascii: "*"), UInt8(ascii: "?"):
                if isEscaped {
                    elements.append(.byte(byte))
                    literal.append(byte)
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else {
                    elements.append(byte == UInt8(ascii: "?") ? .one : .run)
                }
            default:
                if isEscaped { throw SyntaxError(reason: #"a "\" must be followed by "*", "?" or "\""#) }
                elements.append(.byte(byte))
                literal.append(byte)
            }
        }
        if isEscaped { throw SyntaxError(reason: #"a "\" at the end escapes nothing"#) }
        isGlob = literal.count < elements.count
        if !(isGlob && literal.isEmpty),
            let reason = Naming.violation(literal.span, maximum: Naming.maximumCollectionNameBytes)
        {
            throw SyntaxError(reason: "the name of a collection \(reason)")
        }
        text = String(decoding: bytes, as: UTF8.self)
        literalCodePoints = literal.count { $0 & 0xC0 != 0x80 }
        self.literal = literal
        self.elements = elements
    }

    /// Whether the pattern matches this name, given as UTF-8.
    package func matches(_ name: Span<UInt8>) -> Bool {
        var element = 0
        var index = 0
        var retry: (element: Int, index: Int)?
        while index < name.count {
            if element < elements.count {
                switch elements[element] {
                case .run:
                    element += 1
                    retry = (element, index)
                    continue
                case .one:
                    element += 1
                    index = Self.codePointEnd(name, index)
                    continue
                case .byte(let byte) where byte == name[index]:
                    element += 1
                    index += 1
                    continue
                case .byte: break
                }
            }
            guard let last = retry else { return false }
            element = last.element
            index = Self.codePointEnd(name, last.index)
            retry = (element, index)
        }
        while element < elements.count, elements[element] == .run { element += 1 }
        return element == elements.count
    }

    private static func codePointEnd(_ name: Span<UInt8>, _ start: Int) -> Int {
        var end = start + 1
        while end < name.count, name[end] & 0xC0 == 0x80 { end += 1 }
        return end
    }
}
