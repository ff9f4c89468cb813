/// A strict scanner for JSON text (RFC 8259) over bytes.
///
/// It decodes nothing: one pass validates the text, UTF-8 included, and returns where values begin and end, so that an
/// item is passed from a request to storage and back as the bytes in which it was sent. The caller pulls: it enters an
/// object, asks for one key after another, and either skips the value, which returns its range, or enters it. Nesting
/// is tracked in a bit stack, not by recursion, so that deep input cannot exhaust the thread's stack.
///
/// Strings are scanned eight bytes at a time while they are plain ASCII, because `item` is most of every request.
///
/// A scan that counts its ``Work`` may be stopped; it throws then.
package struct JSONScanner: ~Copyable {
    /// The index of the next byte.
    package private(set) var position: Int

    /// One bit for each open array (0) or object (1) inside the value being skipped, 64 to a word.
    private var nesting: [UInt64] = []

    package init(at position: Int = 0) {
        self.position = position
    }

    /// Continues at `position`; memory is reused.
    package mutating func reset(at position: Int = 0) {
        self.position = position
    }

    // MARK: Values

    /// The kind of the next value, according to its first byte; white space before it is skipped.
    @inline(__always)
    package mutating func peekKind(_ text: Span<UInt8>) throws(JSONSyntaxError) -> JSONKind {
        var meter = Unmetered()
        return try peekKind(text, metered: &meter)
    }

    /// As ``peekKind(_:)``.
    package mutating func peekKind(_ text: Span<UInt8>, _ work: inout Work) throws(JSONSyntaxError) -> JSONKind {
        work.begin(at: position)
        let kind = try peekKind(text, metered: &work)
        // With a bracket, which may be entered.
        guard work.end(at: position + 1) else { throw error(.stopped) }
        return kind
    }

    @inline(__always)
    private mutating func peekKind(
        _ text: Span<UInt8>, metered meter: inout some ScanMeter
    ) throws(JSONSyntaxError) -> JSONKind {
        skipWhiteSpace(text, &meter)
        guard position < text.count else { throw error(.unexpectedEnd) }
        switch text[position] {
        case UInt8(ascii: "{"): return .object
        case UInt8(ascii: "["): return .array
        case UInt8(ascii: "\""): return .string
        case UInt8(ascii: "t"): return .true
        case UInt8(ascii: "f"): return .false
        case UInt8(ascii: "n"): return .null
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number
        default: throw error(.unexpectedByte)
        }
    }

    /// Skips one value of any kind and returns its range.
    package mutating func value(_ text: Span<UInt8>) throws(JSONSyntaxError) -> JSONSlice {
        var meter = Unmetered()
        return try value(text, metered: &meter)
    }

    /// Skips one value of any kind and returns its range.
    package mutating func value(_ text: Span<UInt8>, _ work: inout Work) throws(JSONSyntaxError) -> JSONSlice {
        work.begin(at: position)
        let value = try work.isShort(text) ? value(text) : value(text, metered: &work)
        try end(&work)
        return value
    }

    private mutating func end(_ work: inout Work) throws(JSONSyntaxError) {
        guard work.end(at: position) else { throw error(.stopped) }
    }

    private mutating func value(
        _ text: Span<UInt8>, metered meter: inout some ScanMeter
    ) throws(JSONSyntaxError) -> JSONSlice {
        let kind = try peekKind(text, metered: &meter)
        let start = position
        switch kind {
        case .string:
            let string = try string(text, &meter)
            return JSONSlice(start: start, end: position, kind: .string, hasEscapes: string.hasEscapes)
        case .number:
            try skipNumber(text, &meter)
        case .true: try skipLiteral("true", text)
        case .false: try skipLiteral("false", text)
        case .null: try skipLiteral("null", text)
        case .array, .object:
            let depth = try skipContainer(text, &meter)
            return JSONSlice(start: start, end: position, kind: kind, depth: depth)
        }
        return JSONSlice(start: start, end: position, kind: kind)
    }

    /// Scans a text that must be exactly one value, white space around it apart. Begins at the start of the text.
    @discardableResult
    package mutating func document(_ text: Span<UInt8>) throws(JSONSyntaxError) -> JSONSlice {
        reset()
        let value = try value(text)
        try expectEnd(text)
        return value
    }

    /// As ``document(_:)``.
    @discardableResult
    package mutating func document(_ text: Span<UInt8>, _ work: inout Work) throws(JSONSyntaxError) -> JSONSlice {
        reset()
        let value = try value(text, &work)
        try expectEnd(text, &work)
        return value
    }

    /// Skips white space and returns whether the text ends there.
    package mutating func isAtEnd(_ text: Span<UInt8>) -> Bool {
        var meter = Unmetered()
        skipWhiteSpace(text, &meter)
        return position == text.count
    }

    /// Skips white space, which must be all that is left of the text.
    package mutating func expectEnd(_ text: Span<UInt8>, _ work: inout Work) throws(JSONSyntaxError) {
        work.begin(at: position)
        skipWhiteSpace(text, &work)
        try end(&work)
        guard position == text.count else { throw error(.trailingBytes) }
    }

    /// Skips white space, which must be all that is left of the text.
    package mutating func expectEnd(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        guard isAtEnd(text) else { throw error(.trailingBytes) }
    }

    // MARK: Objects and arrays

    /// Skips the `{` or `[` that ``peekKind(_:)`` has found.
    package mutating func enter() {
        position += 1
    }

    /// The key of an object's next member; nil at the end of the object. The next value is the member's.
    ///
    /// - Parameter isFirst: true for the first call after ``enter()``; becomes false.
    package mutating func nextKey(_ text: Span<UInt8>, isFirst: inout Bool) throws(JSONSyntaxError) -> JSONSlice? {
        var meter = Unmetered()
        return try nextKey(text, &isFirst, metered: &meter)
    }

    /// As ``nextKey(_:isFirst:)``.
    package mutating func nextKey(
        _ text: Span<UInt8>, isFirst: inout Bool, _ work: inout Work
    ) throws(JSONSyntaxError) -> JSONSlice? {
        work.begin(at: position)
        let key = try work.isShort(text) ? nextKey(text, isFirst: &isFirst) : nextKey(text, &isFirst, metered: &work)
        try end(&work)
        return key
    }

    @inline(__always)
    private mutating func nextKey(
        _ text: Span<UInt8>, _ isFirst: inout Bool, metered meter: inout some ScanMeter
    ) throws(JSONSyntaxError) -> JSONSlice? {
        skipWhiteSpace(text, &meter)
        guard position < text.count else { throw error(.unexpectedEnd) }
        if text[position] == UInt8(ascii: "}") {
            position += 1
            return nil
        }
        if !isFirst {
            try expect(UInt8(ascii: ","), text)
            skipWhiteSpace(text, &meter)
        }
        isFirst = false
        return try key(text, &meter)
    }

    /// Whether an array has another element; false at the end of the array. The next value is that element.
    ///
    /// The caller must scan the element before it asks again: that finds a comma before the `]`.
    ///
    /// - Parameter isFirst: true for the first call after ``enter()``; becomes false.
    package mutating func nextElement(_ text: Span<UInt8>, isFirst: inout Bool) throws(JSONSyntaxError) -> Bool {
        var meter = Unmetered()
        return try nextElement(text, &isFirst, metered: &meter)
    }

    /// As ``nextElement(_:isFirst:)``.
    package mutating func nextElement(
        _ text: Span<UInt8>, isFirst: inout Bool, _ work: inout Work
    ) throws(JSONSyntaxError) -> Bool {
        work.begin(at: position)
        let hasMore =
            try work.isShort(text)
            ? nextElement(text, isFirst: &isFirst) : nextElement(text, &isFirst, metered: &work)
        try end(&work)
        return hasMore
    }

    @inline(__always)
    private mutating func nextElement(
        _ text: Span<UInt8>, _ isFirst: inout Bool, metered meter: inout some ScanMeter
    ) throws(JSONSyntaxError) -> Bool {
        skipWhiteSpace(text, &meter)
        guard position < text.count else { throw error(.unexpectedEnd) }
        if text[position] == UInt8(ascii: "]") {
            position += 1
            return false
        }
        if !isFirst { try expect(UInt8(ascii: ","), text) }
        isFirst = false
        return true
    }

    // MARK: Parts

    @inline(__always)
    private mutating func key(
        _ text: Span<UInt8>, _ meter: inout some ScanMeter
    ) throws(JSONSyntaxError) -> JSONSlice {
        guard position < text.count else { throw error(.unexpectedEnd) }
        guard text[position] == UInt8(ascii: "\"") else { throw error(.unexpectedByte) }
        let key = try string(text, &meter)
        skipWhiteSpace(text, &meter)
        try expect(UInt8(ascii: ":"), text)
        return key
    }

    private func error(_ reason: JSONSyntaxError.Reason) -> JSONSyntaxError {
        JSONSyntaxError(reason: reason, offset: position)
    }

    @inline(__always)
    private mutating func expect(_ byte: UInt8, _ text: Span<UInt8>) throws(JSONSyntaxError) {
        guard position < text.count else { throw error(.unexpectedEnd) }
        guard text[position] == byte else { throw error(.unexpectedByte) }
        position += 1
    }

    @inline(__always)
    private mutating func skipWhiteSpace(_ text: Span<UInt8>, _ meter: inout some ScanMeter) {
        // Where it is stopped, no other white space is expected, so that the scan fails.
        while position < text.count, meter.passes(position) {
            switch text[position] {
            case 0x20, 0x0A, 0x0D, 0x09: position += 1
            default: return
            }
        }
    }

    private mutating func skipLiteral(_ literal: StaticString, _ text: Span<UInt8>) throws(JSONSyntaxError) {
        var index = 0
        while index < literal.utf8CodeUnitCount {
            // A StaticString's bytes live as long as the process, and `index` is below their count.
            try expect(unsafe literal.utf8Start[index], text)
            index += 1
        }
    }

    /// Skips an array or object and returns how deeply it nests (1 for `[]`).
    private mutating func skipContainer(
        _ text: Span<UInt8>, _ meter: inout some ScanMeter
    ) throws(JSONSyntaxError) -> Int {
        var depth = 0
        var deepest = 0
        while true {
            // Here a value starts.
            guard meter.passes(position) else { throw error(.stopped) }
            switch try peekKind(text, metered: &meter) {
            case .object:
                push(isObject: true, at: depth)
                depth += 1
                deepest = max(deepest, depth)
                position += 1
                skipWhiteSpace(text, &meter)
                if position < text.count, text[position] != UInt8(ascii: "}") {
                    _ = try key(text, &meter)
                    continue
                }
            case .array:
                push(isObject: false, at: depth)
                depth += 1
                deepest = max(deepest, depth)
                position += 1
                skipWhiteSpace(text, &meter)
                if position < text.count, text[position] != UInt8(ascii: "]") { continue }
            case .string: _ = try string(text, &meter)
            case .number: try skipNumber(text, &meter)
            case .true: try skipLiteral("true", text)
            case .false: try skipLiteral("false", text)
            case .null: try skipLiteral("null", text)
            }
            // Here a value has ended, or a container is empty.
            var another = false
            while depth > 0, !another {
                skipWhiteSpace(text, &meter)
                guard position < text.count else { throw error(.unexpectedEnd) }
                let isObject = isObject(at: depth - 1)
                let byte = text[position]
                if byte == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    position += 1
                    depth -= 1
                } else if byte == UInt8(ascii: ",") {
                    position += 1
                    if isObject {
                        skipWhiteSpace(text, &meter)
                        _ = try key(text, &meter)
                    }
                    another = true
                } else {
                    throw error(.unexpectedByte)
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

    private mutating func skipNumber(
        _ text: Span<UInt8>, _ meter: inout some ScanMeter
    ) throws(JSONSyntaxError) {
        if text[position] == UInt8(ascii: "-") { position += 1 }
        guard position < text.count else { throw error(.unexpectedEnd) }
        if text[position] == UInt8(ascii: "0") {
            position += 1
        } else {
            try skipDigits(text, &meter)
        }
        if position < text.count, text[position] == UInt8(ascii: ".") {
            position += 1
            try skipDigits(text, &meter)
        }
        if position < text.count, text[position] | 0x20 == UInt8(ascii: "e") {
            position += 1
            if position < text.count, text[position] == UInt8(ascii: "+") || text[position] == UInt8(ascii: "-") {
                position += 1
            }
            try skipDigits(text, &meter)
        }
    }

    /// Skips at least one digit.
    @inline(__always)
    private mutating func skipDigits(
        _ text: Span<UInt8>, _ meter: inout some ScanMeter
    ) throws(JSONSyntaxError) {
        guard position < text.count else { throw error(.unexpectedEnd) }
        guard text[position] &- UInt8(ascii: "0") < 10 else { throw error(.unexpectedByte) }
        repeat {
            position += 1
            guard meter.passes(position) else { throw error(.stopped) }
        } while position < text.count && text[position] &- UInt8(ascii: "0") < 10
    }

    // MARK: Strings

    /// Skips the string whose opening quote is the next byte.
    private mutating func string<Meter: ScanMeter>(
        _ text: Span<UInt8>, _ meter: inout Meter
    ) throws(JSONSyntaxError) -> JSONSlice {
        let start = position
        let raw = text.bytes
        var hasEscapes = false
        position += 1
        while true {
            guard meter.passes(position) else { throw error(.stopped) }
            var index = position
            let end = text.count - index > Meter.stride ? index + Meter.stride : text.count
            while index &+ 8 <= end {
                // Eight bytes from `index` on are inside the span, as the line above has checked.
                let word = unsafe raw.unsafeLoadUnaligned(fromUncheckedByteOffset: index, as: UInt64.self)
                let special = Self.specialBytes(UInt64(littleEndian: word))
                if special != 0 {
                    index &+= special.trailingZeroBitCount &>> 3
                    break
                }
                index &+= 8
            }
            position = index
            guard index < end || end < text.count else { throw error(.unexpectedEnd) }
            switch text[index] {
            case UInt8(ascii: "\""):
                position = index &+ 1
                return JSONSlice(start: start, end: position, kind: .string, hasEscapes: hasEscapes)
            case UInt8(ascii: "\\"):
                hasEscapes = true
                try skipEscape(text)
            case 0..<0x20: throw error(.controlCharacter)
            case 0x80...: try skipMultibyteScalar(text)
            default: position = index &+ 1
            }
        }
    }

    /// The top bits of those of eight bytes, the least significant first, that are a quote, a backslash, a control
    /// character or not ASCII. Bits above the lowest one may be set for other bytes too.
    @inline(__always)
    private static func specialBytes(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quote = word ^ (ones &* 0x22)
        let backslash = word ^ (ones &* 0x5C)
        // (x - n) sets a byte's top bit if the byte was below n, or if an earlier one borrowed, which was below n
        // itself; `word` has the top bits of bytes that are not ASCII.
        let found = (quote &- ones) | (backslash &- ones) | (word &- ones &* 0x20) | word
        return found & (ones &* 0x80)
    }

    private mutating func skipEscape(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        guard position + 1 < text.count else { throw error(.unexpectedEnd) }
        switch text[position + 1] {
        case UInt8(ascii: "u"):
            let unit = try hexUnit(text, at: position + 2)
            switch unit {
            case 0xD800..<0xDC00:
                guard position + 7 < text.count else { throw error(.unexpectedEnd) }
                guard text[position + 6] == UInt8(ascii: "\\"), text[position + 7] == UInt8(ascii: "u"),
                    case 0xDC00..<0xE000 = try hexUnit(text, at: position + 8)
                else { throw error(.loneSurrogate) }
                position += 12
            case 0xDC00..<0xE000: throw error(.loneSurrogate)
            default: position += 6
            }
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 2
        default: throw error(.unexpectedByte)
        }
    }

    private func hexUnit(_ text: Span<UInt8>, at start: Int) throws(JSONSyntaxError) -> UInt32 {
        guard start + 4 <= text.count else { throw error(.unexpectedEnd) }
        var unit: UInt32 = 0
        for index in start..<start + 4 {
            guard let digit = hexDigit(text[index]) else { throw error(.unexpectedByte) }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    /// Skips one UTF-8 sequence of two bytes or more.
    private mutating func skipMultibyteScalar(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        let length = wellFormedScalarLength(text, at: position)
        guard length > 0 else { throw error(.invalidUTF8) }
        position += length
    }
}
