/// The kinds of JSON value.
package enum JSONKind: UInt8, Sendable {
    case null, `false`, `true`, number, string, array, object
}

/// The range of a value in its text, quotes and brackets included.
package struct JSONSlice: Sendable, Equatable {
    package var start: Int
    package var end: Int
    package var kind: JSONKind
    /// For a string: it contains escapes, so that its bytes are not its value.
    package var hasEscapes = false
    /// For an array or object: how deeply it nests; 1 if it contains no array or object. Else 0.
    package var depth = 0

    @inlinable
    package init(start: Int, end: Int, kind: JSONKind, hasEscapes: Bool = false, depth: Int = 0) {
        self.start = start
        self.end = end
        self.kind = kind
        self.hasEscapes = hasEscapes
        self.depth = depth
    }

    /// The range of a string without its quotes.
    @inlinable package var content: Range<Int> { start + 1..<end - 1 }

    @inlinable package var range: Range<Int> { start..<end }
    @inlinable package var count: Int { end - start }
}

/// Why a text is not valid JSON.
package struct JSONSyntaxError: Error, Equatable {
    package enum Reason: String, Sendable {
        case unexpectedEnd = "the text ends too early"
        case unexpectedByte = "unexpected character"
        case controlCharacter = "a control character in a string must be written as an escape"
        case loneSurrogate = "half of a surrogate pair"
        case invalidUTF8 = "invalid UTF-8"
        case trailingBytes = "text after the end of the value"
        /// It may be valid: the ``Work`` of the scan has been stopped.
        case stopped = "the scan was stopped"
    }

    package var reason: Reason
    /// The index of the first invalid byte.
    package var offset: Int

    package init(reason: Reason, offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}
