import CRUDJSON

/// Reads a frame of the child protocol, which comes from a process that is not trusted.
///
/// Members and elements of the head are pulled in the order in which they stand, and with each length that is pulled
/// the next bytes of the payload: nothing is copied, and what is wrong is found on the way.
package struct FrameReader: ~Copyable {
    private var scanner = JSONScanner()
    private var head = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
    /// What has not been taken yet.
    private var payload = UnsafeRawBufferPointer(start: nil, count: 0)

    package init() {}

    /// Begins with another frame.
    ///
    /// - Parameter frame: what follows its length; stays where it is until the reader has read it.
    package mutating func begin(_ frame: UnsafeRawBufferPointer) throws(ProtocolViolation) {
        scanner.reset()
        let lengthBytes = FrameWriter.headerBytes - FrameWriter.lengthBytes
        guard frame.count >= lengthBytes else { throw ProtocolViolation("a frame without the length of its head") }
        let length = FrameLength.read(frame)
        let rest = UnsafeRawBufferPointer(rebasing: frame[lengthBytes...])
        guard length <= rest.count else {
            throw ProtocolViolation("a head of \(length) bytes in a frame of \(rest.count)")
        }
        head = UnsafeRawBufferPointer(rebasing: rest[..<length]).assumingMemoryBound(to: UInt8.self)
        payload = UnsafeRawBufferPointer(rebasing: rest[length...])
    }

    /// Where the next value of the head stands or begins.
    package var position: Int { scanner.position }

    /// Moves back to a value of the head whose ``position`` was kept. What was taken of the payload stays taken.
    package mutating func move(to position: Int) {
        scanner.reset(at: position)
    }

    // MARK: Containers

    /// Reads an object: has `member` take the value of each member, or pass over it.
    package mutating func object(
        _ member: (inout FrameReader, FrameString) throws(ProtocolViolation) -> Void
    ) throws(ProtocolViolation) {
        try enter(.object)
        var isFirst = true
        while let key = try nextKey(&isFirst) { try member(&self, key) }
    }

    /// Reads an object of which one member counts: has `value` take it.
    package mutating func object(
        with name: StaticString, _ value: (inout FrameReader) throws(ProtocolViolation) -> Void
    ) throws(ProtocolViolation) {
        try object { (reader, key) throws(ProtocolViolation) in
            if name ~= key { try value(&reader) } else { try reader.skip() }
        }
    }

    /// Reads an array: has `element` take each element, or pass over it.
    package mutating func array(
        _ element: (inout FrameReader) throws(ProtocolViolation) -> Void
    ) throws(ProtocolViolation) {
        try enter(.array)
        var isFirst = true
        while try hasElement(&isFirst) { try element(&self) }
    }

    // MARK: Values

    /// Takes a string.
    package mutating func string() throws(ProtocolViolation) -> FrameString {
        FrameString(slice: try value(of: .string), head: head)
    }

    /// Takes a string as a value of its own.
    package mutating func text() throws(ProtocolViolation) -> String { try string().text }

    /// Takes a value of any kind as the JSON that it is.
    package mutating func json() throws(ProtocolViolation) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: head[try value().range])
    }

    /// Takes a whole number from 0 on.
    package mutating func integer() throws(ProtocolViolation) -> UInt64 {
        let slice = try value(of: .number)
        var number: UInt64 = 0
        for digit in head[slice.range] {
            let (tens, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, isStillTooLarge) = tens.addingReportingOverflow(UInt64(digit &- UInt8(ascii: "0")))
            // JSON has signs, points and exponents, too.
            guard 0x30...0x39 ~= digit, !isTooLarge, !isStillTooLarge else {
                throw ProtocolViolation("a number is not a whole one from 0 on, or too large")
            }
            number = sum
        }
        return number
    }

    /// Takes a whole number from 0 on.
    package mutating func count() throws(ProtocolViolation) -> Int {
        guard let count = Int(exactly: try integer()) else { throw ProtocolViolation("a number is too large") }
        return count
    }

    /// Takes a whole number.
    package mutating func signedInteger() throws(ProtocolViolation) -> Int {
        guard let integer = Int(String(decoding: head[try value(of: .number).range], as: UTF8.self)) else {
            throw ProtocolViolation("a number is not a whole one, or too large")
        }
        return integer
    }

    /// Takes `true` or `false`.
    package mutating func bool() throws(ProtocolViolation) -> Bool {
        switch try value().kind {
        case .true: true
        case .false: false
        default: throw ProtocolViolation("a value is neither true nor false")
        }
    }

    /// Takes a length and as many bytes of the payload, which are there as long as the frame.
    package mutating func bytes() throws(ProtocolViolation) -> UnsafeRawBufferPointer {
        let length = try integer()
        guard length <= payload.count else {
            throw ProtocolViolation("\(length) bytes of a payload, of which \(payload.count) are left")
        }
        let bytes = UnsafeRawBufferPointer(rebasing: payload[..<Int(length)])
        payload = UnsafeRawBufferPointer(rebasing: payload[Int(length)...])
        return bytes
    }

    /// Passes over a value.
    package mutating func skip() throws(ProtocolViolation) {
        _ = try value()
    }

    /// Passes over what is left of the payload.
    package mutating func skipPayload() {
        payload = UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Nothing must be left of the frame.
    package mutating func expectEnd() throws(ProtocolViolation) {
        guard scanner.isAtEnd(head.span) else { throw ProtocolViolation("text after the object of a head") }
        guard payload.isEmpty else {
            throw ProtocolViolation("\(payload.count) bytes of a payload that no length in the head stands for")
        }
    }

    // MARK: Parts

    private mutating func value() throws(ProtocolViolation) -> JSONSlice {
        do throws(JSONSyntaxError) { return try scanner.value(head.span) } catch { throw ProtocolViolation(error) }
    }

    private mutating func value(of kind: JSONKind) throws(ProtocolViolation) -> JSONSlice {
        let slice = try value()
        guard slice.kind == kind else { throw ProtocolViolation("a \(slice.kind) in the place of a \(kind)") }
        return slice
    }

    private mutating func enter(_ kind: JSONKind) throws(ProtocolViolation) {
        let found: JSONKind
        do throws(JSONSyntaxError) { found = try scanner.peekKind(head.span) } catch { throw ProtocolViolation(error) }
        guard found == kind else { throw ProtocolViolation("a \(found) in the place of an \(kind)") }
        scanner.enter()
    }

    private mutating func nextKey(_ isFirst: inout Bool) throws(ProtocolViolation) -> FrameString? {
        do throws(JSONSyntaxError) {
            return try scanner.nextKey(head.span, isFirst: &isFirst).map { FrameString(slice: $0, head: head) }
        } catch {
            throw ProtocolViolation(error)
        }
    }

    private mutating func hasElement(_ isFirst: inout Bool) throws(ProtocolViolation) -> Bool {
        do throws(JSONSyntaxError) {
            return try scanner.nextElement(head.span, isFirst: &isFirst)
        } catch {
            throw ProtocolViolation(error)
        }
    }
}

/// A key or a string of a frame's head, which is there as long as the frame.
package struct FrameString {
    fileprivate let slice: JSONSlice
    fileprivate let head: UnsafeBufferPointer<UInt8>

    /// The string as a value of its own.
    package var text: String {
        slice.hasEscapes
            ? String(decoding: slice.decodedString(head.span), as: UTF8.self)
            : String(decoding: head[slice.content], as: UTF8.self)
    }

    /// Whether the string has a value: what `case "a":` asks.
    package static func ~= (value: StaticString, string: FrameString) -> Bool {
        string.slice.equals(value, string.head.span)
    }
}

/// A length in front of a frame or of its head: four bytes, the most significant first.
enum FrameLength {
    /// - Parameter bytes: at least four.
    static func read(_ bytes: UnsafeRawBufferPointer) -> Int {
        Int(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
    }
}
