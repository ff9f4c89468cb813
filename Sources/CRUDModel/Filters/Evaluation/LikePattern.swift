import CRUDJSON

/// A parsed pattern of `like`: `%` matches any run of characters, `_` one code point, and `\` escapes `%`, `_` and `\`.
///
/// The runs cut a pattern into segments. The first one stands at the start of the text and the last one at its end;
/// each of the others is searched for behind the one before it. That it is taken where it is first found leaves the
/// most text to those that follow, so that no part of the text is searched twice (``SegmentSearch``).
package struct LikePattern: Sendable {
    /// The segments, one behind the other.
    private var tokens: [PatternToken] = []
    /// Where each segment ends. There is one more than there are runs.
    private var ends: [Int] = []

    /// How long a pattern may be, escapes included.
    package static let maximumBytes = 1024

    /// Nil if a backslash precedes anything else, or is at the end.
    package init?(_ pattern: some Sequence<UInt8>) {
        var isEscaped = false
        for byte in pattern {
            let isSpecial = byte == UInt8(ascii: "%") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "\\")
            if isEscaped {
                guard isSpecial else { return nil }
                tokens.append(.byte(byte))
                isEscaped = false
                continue
            }
            switch byte {
            case UInt8(ascii: "\\"): isEscaped = true
            case UInt8(ascii: "%"): ends.append(tokens.count)
            case UInt8(ascii: "_"): tokens.append(.one)
            default: tokens.append(.byte(byte))
            }
        }
        if isEscaped { return nil }
        ends.append(tokens.count)
    }

    /// The bytes with which every matching text begins.
    package var prefix: [UInt8] {
        tokens[..<ends[0]].prefix { $0 != .one }.map { if case .byte(let byte) = $0 { byte } else { 0 } }
    }

    /// Whether a text, which is UTF-8, matches; the result means nothing where the work has been stopped.
    ///
    /// The work is the text's length for each 64 bytes of the longest segment, and some hundred bytes for each segment
    /// that is searched for.
    func matches(_ text: Span<UInt8>, _ range: Range<Int>, _ work: inout Work) -> Bool {
        guard var start = Self.end(of: tokens[..<ends[0]], at: range.lowerBound, text, range.upperBound)
        else { return false }
        guard ends.count > 1 else { return start == range.upperBound }
        let last = tokens[ends[ends.count - 2]...]
        guard let end = Self.start(of: last, before: range.upperBound, text, start) else { return false }
        for index in 1..<ends.count - 1 where ends[index - 1] < ends[index] {
            let search = SegmentSearch(tokens[ends[index - 1]..<ends[index]])
            guard let found = search.end(in: text, start..<end, &work) else { return false }
            start = found
        }
        return true
    }

    /// Where a segment ends that begins at an index; nil if the text differs.
    static func end(of tokens: ArraySlice<PatternToken>, at start: Int, _ text: Span<UInt8>, _ limit: Int) -> Int? {
        var index = start
        for token in tokens {
            guard index < limit else { return nil }
            if case .byte(let byte) = token {
                guard text[index] == byte else { return nil }
                index += 1
            } else {
                index = scalarEnd(index, text)
            }
        }
        return index
    }

    /// Where a segment begins that ends at an index; nil if the text differs.
    private static func start(
        of tokens: ArraySlice<PatternToken>, before end: Int, _ text: Span<UInt8>, _ limit: Int
    ) -> Int? {
        var index = end
        for token in tokens.reversed() {
            guard index > limit else { return nil }
            index -= 1
            if case .byte(let byte) = token {
                guard text[index] == byte else { return nil }
            } else {
                while text[index].isContinuation, index > limit { index -= 1 }
            }
        }
        return index
    }

    static func scalarEnd(_ index: Int, _ text: Span<UInt8>) -> Int {
        switch text[index] {
        case 0..<0x80: index + 1
        case 0x80..<0xE0: index + 2
        case 0xE0..<0xF0: index + 3
        default: index + 4
        }
    }
}

/// What a pattern has between its runs.
enum PatternToken: Equatable, Sendable {
    /// Any one code point.
    case one
    case byte(UInt8)
}

extension UInt8 {
    /// Whether it is a byte of a code point in UTF-8, but not its first.
    var isContinuation: Bool { self & 0xC0 == 0x80 }
}
