/// A strict scanner for JSON text (RFC 8259) over bytes.
///
/// It decodes nothing: one pass validates the text, UTF-8 included, and notes where values begin and end, so that an
/// item travels from a request to storage and back as the bytes it came in. The caller pulls: it enters an object,
/// asks for one key after the other, and either takes the value's range whole or enters it in turn. Nesting is
/// followed in a bit stack, not by recursion, so that no depth of input can exhaust the thread's stack.
///
/// Strings are scanned eight bytes at a time while they are plain ASCII: `item` is most of every request.
package struct JSONScanner: ~Copyable {
    /// The next byte to look at.
    package private(set) var position: Int

    /// One bit for each open array (0) or object (1) inside the value being skipped, 64 to a word.
    private var nesting: [UInt64] = []

    package init(at position: Int = 0) {
        self.position = position
    }

    /// Starts anew at `position`, keeping its memory.
    package mutating func reset(at position: Int = 0) {
        self.position = position
    }

    // MARK: Values

    /// What kind of value comes next, by its first byte; white space before it is passed over.
    package mutating func peekKind(_ text: Span<UInt8>) throws(JSONSyntaxError) -> JSONKind {
        skipWhiteSpace(text)
        guard position < text.count else { throw fault(.unexpectedEnd) }
        switch text[position] {
        case UInt8(ascii: "{"): return .object
        case UInt8(ascii: "["): return .array
        case UInt8(ascii: "\""): return .string
        case UInt8(ascii: "t"): return .true
        case UInt8(ascii: "f"): return .false
        case UInt8(ascii: "n"): return .null
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number
        default: throw fault(.unexpectedByte)
        }
    }

    /// Passes over one value of any kind and tells where it stood.
    package mutating func value(_ text: Span<UInt8>) throws(JSONSyntaxError) -> JSONSlice {
        let kind = try peekKind(text)
        let start = position
        switch kind {
        case .string:
            let string = try string(text)
            return JSONSlice(start: start, end: position, kind: .string, hasEscapes: string.hasEscapes)
        case .number:
            try skipNumber(text)
        case .true: try skipLiteral("true", text)
        case .false: try skipLiteral("false", text)
        case .null: try skipLiteral("null", text)
        case .array, .object:
            let depth = try skipContainer(text)
            return JSONSlice(start: start, end: position, kind: kind, depth: depth)
        }
        return JSONSlice(start: start, end: position, kind: kind)
    }

    /// Passes over white space and says whether the text ends there.
    package mutating func isAtEnd(_ text: Span<UInt8>) -> Bool {
        skipWhiteSpace(text)
        return position == text.count
    }

    // MARK: Objects and arrays, pulled

    /// Passes over the `{` or `[` that ``peekKind(_:)`` has announced.
    package mutating func enter() {
        position += 1
    }

    /// The key of an object's next member, its colon passed; nil once the object is closed.
    ///
    /// - Parameter isFirst: true for the first call after ``enter()``; becomes false.
    package mutating func nextKey(_ text: Span<UInt8>, isFirst: inout Bool) throws(JSONSyntaxError) -> JSONSlice? {
        skipWhiteSpace(text)
        guard position < text.count else { throw fault(.unexpectedEnd) }
        if text[position] == UInt8(ascii: "}") {
            position += 1
            return nil
        }
        if !isFirst {
            try expect(UInt8(ascii: ","), text)
            skipWhiteSpace(text)
        }
        isFirst = false
        return try key(text)
    }

    /// Whether an array has a further element, the comma before it passed; false once the array is closed.
    /// The caller takes the element before it asks again, so that a comma before the `]` is found there.
    ///
    /// - Parameter isFirst: true for the first call after ``enter()``; becomes false.
    package mutating func nextElement(_ text: Span<UInt8>, isFirst: inout Bool) throws(JSONSyntaxError) -> Bool {
        skipWhiteSpace(text)
        guard position < text.count else { throw fault(.unexpectedEnd) }
        if text[position] == UInt8(ascii: "]") {
            position += 1
            return false
        }
        if !isFirst { try expect(UInt8(ascii: ","), text) }
        isFirst = false
        return true
    }

    // MARK: Parts

    private mutating func key(_ text: Span<UInt8>) throws(JSONSyntaxError) -> JSONSlice {
        guard position < text.count else { throw fault(.unexpectedEnd) }
        guard text[position] == UInt8(ascii: "\"") else { throw fault(.unexpectedByte) }
        let key = try string(text)
        skipWhiteSpace(text)
        try expect(UInt8(ascii: ":"), text)
        return key
    }

    private func fault(_ reason: JSONSyntaxError.Reason) -> JSONSyntaxError {
        JSONSyntaxError(reason: reason, offset: position)
    }

    private mutating func expect(_ byte: UInt8, _ text: Span<UInt8>) throws(JSONSyntaxError) {
        guard position < text.count else { throw fault(.unexpectedEnd) }
        guard text[position] == byte else { throw fault(.unexpectedByte) }
        position += 1
    }

    @inline(__always)
    private mutating func skipWhiteSpace(_ text: Span<UInt8>) {
        while position < text.count {
            switch text[position] {
            case 0x20, 0x0A, 0x0D, 0x09: position += 1
            default: return
            }
        }
    }

    private mutating func skipLiteral(_ literal: StaticString, _ text: Span<UInt8>) throws(JSONSyntaxError) {
        var index = 0
        while index < literal.utf8CodeUnitCount {
            // A StaticString's bytes outlive everything, and `index` is below their count.
            try expect(unsafe literal.utf8Start[index], text)
            index += 1
        }
    }

    /// Passes over an array or object and tells how deeply it nests (1 for `[]`).
    private mutating func skipContainer(_ text: Span<UInt8>) throws(JSONSyntaxError) -> Int {
        var depth = 0
        var deepest = 0
        while true {
            // Here a value starts.
            switch try peekKind(text) {
            case .object:
                push(isObject: true, at: depth)
                depth += 1
                deepest = max(deepest, depth)
                position += 1
                skipWhiteSpace(text)
                if position < text.count, text[position] != UInt8(ascii: "}") {
                    _ = try key(text)
                    continue
                }
            case .array:
                push(isObject: false, at: depth)
                depth += 1
                deepest = max(deepest, depth)
                position += 1
                skipWhiteSpace(text)
                if position < text.count, text[position] != UInt8(ascii: "]") { continue }
            case .string: _ = try string(text)
            case .number: try skipNumber(text)
            case .true: try skipLiteral("true", text)
            case .false: try skipLiteral("false", text)
            case .null: try skipLiteral("null", text)
            }
            // Here a value has ended, or an empty container waits for its end.
            var another = false
            while depth > 0, !another {
                skipWhiteSpace(text)
                guard position < text.count else { throw fault(.unexpectedEnd) }
                let isObject = isObject(at: depth - 1)
                let byte = text[position]
                if byte == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    position += 1
                    depth -= 1
                } else if byte == UInt8(ascii: ",") {
                    position += 1
                    if isObject {
                        skipWhiteSpace(text)
                        _ = try key(text)
                    }
                    another = true
                } else {
                    throw fault(.unexpectedByte)
                }
            }
            if depth == 0 { return deepest }
        }
    }

    private mutating func push(isObject: Bool, at depth: Int) {
        let word = depth >> 6
        if word == nesting.count { nesting.append(0) }
        let bit: UInt64 = 1 << UInt64(depth & 63)
        if isObject { nesting[word] |= bit } else { nesting[word] &= ~bit }
    }

    private func isObject(at depth: Int) -> Bool {
        nesting[depth >> 6] & (1 << UInt64(depth & 63)) != 0
    }

    private mutating func skipNumber(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        if text[position] == UInt8(ascii: "-") { position += 1 }
        guard position < text.count else { throw fault(.unexpectedEnd) }
        if text[position] == UInt8(ascii: "0") {
            position += 1
        } else {
            try skipDigits(text)
        }
        if position < text.count, text[position] == UInt8(ascii: ".") {
            position += 1
            try skipDigits(text)
        }
        if position < text.count, text[position] | 0x20 == UInt8(ascii: "e") {
            position += 1
            if position < text.count, text[position] == UInt8(ascii: "+") || text[position] == UInt8(ascii: "-") {
                position += 1
            }
            try skipDigits(text)
        }
    }

    /// Passes over one digit or more.
    private mutating func skipDigits(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        guard position < text.count else { throw fault(.unexpectedEnd) }
        guard text[position] &- UInt8(ascii: "0") < 10 else { throw fault(.unexpectedByte) }
        repeat { position += 1 } while position < text.count && text[position] &- UInt8(ascii: "0") < 10
    }

    // MARK: Strings

    /// Passes over the string whose opening quote is the next byte.
    private mutating func string(_ text: Span<UInt8>) throws(JSONSyntaxError) -> JSONSlice {
        let start = position
        let raw = text.bytes
        var hasEscapes = false
        position += 1
        while true {
            while position &+ 8 <= text.count {
                // Eight bytes from `position` on are inside the span, as the line above has checked.
                let word = unsafe raw.unsafeLoadUnaligned(fromUncheckedByteOffset: position, as: UInt64.self)
                if Self.hasSpecialByte(word) { break }
                position &+= 8
            }
            guard position < text.count else { throw fault(.unexpectedEnd) }
            switch text[position] {
            case UInt8(ascii: "\""):
                position += 1
                return JSONSlice(start: start, end: position, kind: .string, hasEscapes: hasEscapes)
            case UInt8(ascii: "\\"):
                hasEscapes = true
                try skipEscape(text)
            case 0..<0x20: throw fault(.controlCharacter)
            case 0x80...: try skipMultibyteScalar(text)
            default: position += 1
            }
        }
    }

    /// Whether any of eight bytes is a quote, a backslash, a control character or not ASCII.
    @inline(__always)
    private static func hasSpecialByte(_ word: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quote = word ^ (ones &* 0x22)
        let backslash = word ^ (ones &* 0x5C)
        // (x - n) sets a byte's top bit where that byte was below n (or an earlier one borrowed, which only errs towards
        // the careful path); `word` itself brings in the top bits of bytes that are not ASCII.
        let found = (quote &- ones) | (backslash &- ones) | (word &- ones &* 0x20) | word
        return found & (ones &* 0x80) != 0
    }

    private mutating func skipEscape(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        guard position + 1 < text.count else { throw fault(.unexpectedEnd) }
        switch text[position + 1] {
        case UInt8(ascii: "u"):
            let unit = try hexUnit(text, at: position + 2)
            switch unit {
            case 0xD800..<0xDC00:
                guard position + 7 < text.count else { throw fault(.unexpectedEnd) }
                guard text[position + 6] == UInt8(ascii: "\\"), text[position + 7] == UInt8(ascii: "u"),
                    case 0xDC00..<0xE000 = try hexUnit(text, at: position + 8)
                else { throw fault(.loneSurrogate) }
                position += 12
            case 0xDC00..<0xE000: throw fault(.loneSurrogate)
            default: position += 6
            }
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 2
        default: throw fault(.unexpectedByte)
        }
    }

    private func hexUnit(_ text: Span<UInt8>, at start: Int) throws(JSONSyntaxError) -> UInt32 {
        guard start + 4 <= text.count else { throw fault(.unexpectedEnd) }
        var unit: UInt32 = 0
        for index in start..<start + 4 {
            guard let digit = hexDigit(text[index]) else { throw fault(.unexpectedByte) }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    /// Passes over one scalar of two bytes or more; the table is Unicode's 3-7, "Well-Formed UTF-8 Byte Sequences".
    private mutating func skipMultibyteScalar(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        let length = wellFormedScalarLength(text, at: position)
        guard length > 0 else { throw fault(.invalidUTF8) }
        position += length
    }
}
