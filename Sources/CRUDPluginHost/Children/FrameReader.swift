package import CRUDJSON

/// Reads the JSON of a frame of the child protocol, which comes from a process that nobody vouches for.
///
/// Members and elements are pulled in the order in which they stand; what is not JSON is found on the way. Texts are not
/// copied unless they are spelt with escapes or in base64.
package struct FrameReader: ~Copyable {
    private var scanner = JSONScanner()
    /// What the frame spells otherwise than byte for byte.
    private var arena = ByteArena()
    private var frame = UnsafeBufferPointer<UInt8>(start: nil, count: 0)

    package init() {}

    /// Begins with another frame, without its length.
    ///
    /// - Parameter frame: stays where it is until the reader has read it.
    package mutating func begin(_ frame: UnsafeBufferPointer<UInt8>) {
        self.frame = frame
        scanner.reset()
        forgetTexts()
    }

    /// Lets go of the texts that had to be decoded; they are not asked for again.
    package mutating func forgetTexts() {
        arena.removeAll()
    }

    /// Where the next value stands or begins.
    package var position: Int { scanner.position }

    /// Goes back to a value whose `position` was kept.
    package mutating func go(to position: Int) {
        scanner.reset(at: position)
    }

    // MARK: Containers

    /// Reads an object: has `member` take the value of each member, or pass over it.
    package mutating func object(
        _ member: (inout FrameReader, JSONSlice) throws(FrameFault) -> Void
    ) throws(FrameFault) {
        try enter(.object)
        var isFirst = true
        while let key = try nextKey(&isFirst) { try member(&self, key) }
    }

    /// Reads an array: has `element` take each element, or pass over it.
    package mutating func array(_ element: (inout FrameReader) throws(FrameFault) -> Void) throws(FrameFault) {
        try enter(.array)
        var isFirst = true
        while try hasElement(&isFirst) { try element(&self) }
    }

    /// Whether a key has this value.
    package func isKey(_ key: JSONSlice, _ name: StaticString) -> Bool { key.equals(name, frame.span) }

    // MARK: Values

    /// Takes a string.
    package mutating func string() throws(FrameFault) -> FrameText {
        let slice = try value(of: .string)
        guard slice.hasEscapes else { return .frame(slice.content) }
        return .decoded(arena.append(slice.decodedString(frame.span).span))
    }

    /// Takes a string that spells bytes in base64.
    package mutating func base64() throws(FrameFault) -> FrameText {
        let text = try string()
        guard let decoded = Base64.bytes(bytes(text)) else { throw FrameFault("a text is no base64") }
        return .decoded(arena.append(decoded.span))
    }

    /// Takes a string as a value of its own.
    package mutating func text() throws(FrameFault) -> String {
        String(decoding: bytes(try string()), as: UTF8.self)
    }

    /// Takes a value of any kind as the JSON that it is.
    package mutating func json() throws(FrameFault) -> FrameText {
        .frame(try value().range)
    }

    /// Takes a whole number from 0 on.
    package mutating func count() throws(FrameFault) -> Int {
        let slice = try value(of: .number)
        var number = 0
        for digit in bytes(.frame(slice.range)) {
            let (tens, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, isStillTooLarge) = tens.addingReportingOverflow(Int(digit) - Int(UInt8(ascii: "0")))
            // JSON has signs, points and exponents, too.
            guard 0x30...0x39 ~= digit, !isTooLarge, !isStillTooLarge else {
                throw FrameFault("a number is none from 0 on")
            }
            number = sum
        }
        return number
    }

    /// Takes `true` or `false`.
    package mutating func bool() throws(FrameFault) -> Bool {
        switch try value().kind {
        case .true: true
        case .false: false
        default: throw FrameFault("a value is neither true nor false")
        }
    }

    /// Passes over a value.
    package mutating func skip() throws(FrameFault) {
        _ = try value()
    }

    /// The frame must be at its end.
    package mutating func expectEnd() throws(FrameFault) {
        guard scanner.isAtEnd(frame.span) else { throw FrameFault("something follows the frame's object") }
    }

    /// The bytes of a text, until the next frame begins; of one that had to be decoded until the next one is taken.
    package func bytes(_ text: FrameText) -> UnsafeRawBufferPointer {
        switch text {
        case .frame(let range): UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(frame)[range])
        case .decoded(let place): arena.bytes(place)
        }
    }

    // MARK: Parts

    private mutating func value() throws(FrameFault) -> JSONSlice {
        do throws(JSONSyntaxError) { return try scanner.value(frame.span) } catch { throw FrameFault(error) }
    }

    private mutating func value(of kind: JSONKind) throws(FrameFault) -> JSONSlice {
        let slice = try value()
        guard slice.kind == kind else { throw FrameFault("a \(slice.kind) stands where a \(kind) belongs") }
        return slice
    }

    private mutating func enter(_ kind: JSONKind) throws(FrameFault) {
        let found: JSONKind
        do throws(JSONSyntaxError) { found = try scanner.peekKind(frame.span) } catch { throw FrameFault(error) }
        guard found == kind else { throw FrameFault("a \(found) stands where an \(kind) belongs") }
        scanner.enter()
    }

    private mutating func nextKey(_ isFirst: inout Bool) throws(FrameFault) -> JSONSlice? {
        do throws(JSONSyntaxError) {
            return try scanner.nextKey(frame.span, isFirst: &isFirst)
        } catch {
            throw FrameFault(error)
        }
    }

    private mutating func hasElement(_ isFirst: inout Bool) throws(FrameFault) -> Bool {
        do throws(JSONSyntaxError) {
            return try scanner.nextElement(frame.span, isFirst: &isFirst)
        } catch {
            throw FrameFault(error)
        }
    }
}

/// A text of a frame: the bytes stand in the frame itself or, where it spells them otherwise, beside it.
package enum FrameText: Sendable {
    case frame(Range<Int>)
    case decoded(ByteArena.Place)
}

/// Why a frame is not what the protocol says: one line for the administrator.
package struct FrameFault: Error, CustomStringConvertible {
    package var description: String

    package init(_ description: String) {
        self.description = description
    }

    fileprivate init(_ error: JSONSyntaxError) {
        description = "byte \(error.offset) is no JSON: \(error.reason.rawValue)"
    }
}
