/// A parsed pattern of `like`: `%` matches any run of characters, `_` one code point, and `\` escapes `%`, `_` and `\`.
package struct LikePattern: Sendable {
    private enum Token: Equatable {
        case run, one
        case byte(UInt8)
    }

    private var tokens: [Token] = []

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
            case UInt8(ascii: "%"): if tokens.last != .run { tokens.append(.run) }
            case UInt8(ascii: "_"): tokens.append(.one)
            default: tokens.append(.byte(byte))
            }
        }
        if isEscaped { return nil }
    }

    /// The bytes with which every matching text begins.
    package var prefix: [UInt8] {
        tokens.prefix { if case .byte = $0 { true } else { false } }.map {
            if case .byte(let byte) = $0 { byte } else { 0 }
        }
    }

    /// Whether a text, which is UTF-8, matches.
    ///
    /// A run matches as little as possible; if the remaining pattern does not match, the last run is extended by one
    /// code point. Earlier runs need not be extended: what follows them was found as early as possible. So the time is
    /// at most pattern × text.
    func matches(_ text: Span<UInt8>, _ range: Range<Int>) -> Bool {
        var (index, token) = (range.lowerBound, 0)
        /// Where to continue if the remaining pattern does not match: behind the last run, and behind its text.
        var retry: (index: Int, token: Int)?
        while true {
            if token < tokens.count, tokens[token] == .run {
                token += 1
                retry = (index, token)
                continue
            }
            if index == range.upperBound {
                return token == tokens.count
            }
            if token < tokens.count, take(tokens[token], text, &index) {
                token += 1
                continue
            }
            guard let last = retry else { return false }
            index = scalarEnd(last.index, text)
            token = last.token
            retry = (index, token)
        }
    }

    private func take(_ token: Token, _ text: Span<UInt8>, _ index: inout Int) -> Bool {
        if case .byte(let byte) = token {
            guard text[index] == byte else { return false }
            index += 1
        } else {
            index = scalarEnd(index, text)
        }
        return true
    }

    private func scalarEnd(_ index: Int, _ text: Span<UInt8>) -> Int {
        switch text[index] {
        case 0..<0x80: index + 1
        case 0x80..<0xE0: index + 2
        case 0xE0..<0xF0: index + 3
        default: index + 4
        }
    }
}
