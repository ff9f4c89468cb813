import CRUDJSON
package import CRUDPluginABI

/// A frame of the child protocol under construction: its length, the length of its head, a JSON head, a payload.
///
/// The head is written piece by piece, commas and brackets included, since most of it is the same each time.
/// ``bytes(_:)`` puts bytes into the payload and their length into the head, so that the two are always in the same
/// order.
package struct FrameWriter: ~Copyable {
    /// The two lengths and the head.
    private var front: [UInt8] = []
    private var payload: [UInt8] = []

    /// How many bytes stand before the length of the head: the length of the frame.
    package static let lengthBytes = 4
    /// How many bytes stand before the head.
    package static let headerBytes = 8
    /// A frame that was larger does not keep its memory.
    private static let keptBytes = 4 << 20
    /// A payload that is no longer is copied behind the head rather than sent from where it is.
    private static let joinedBytes = 4096

    package init() {}

    /// How many bytes the frame has so far, its length not counted.
    package var count: Int { front.count - Self.lengthBytes + payload.count }

    /// Begins another frame.
    package mutating func begin() {
        front.removeAll(keepingCapacity: front.capacity <= Self.keptBytes)
        payload.removeAll(keepingCapacity: payload.capacity <= Self.keptBytes)
        front.append(contentsOf: repeatElement(0, count: Self.headerBytes))
    }

    /// Sets the lengths; the frame can be sent now.
    package mutating func end() {
        setLength(count, at: 0)
        setLength(front.count - Self.headerBytes, at: Self.lengthBytes)
    }

    private mutating func setLength(_ length: Int, at offset: Int) {
        let length = UInt32(clamping: length)
        for index in 0..<4 { front[offset + index] = UInt8(truncatingIfNeeded: length >> UInt32(24 - 8 * index)) }
    }

    // MARK: Sending

    /// Lends the frame in two pieces that follow each other; the second one is empty where the frame is short.
    package mutating func withPieces<Result: ~Copyable, Failure: Error>(
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        if payload.count <= Self.joinedBytes { join() }
        return try front.span.withUnsafeBytes { front throws(Failure) in
            try payload.span.withUnsafeBytes { payload throws(Failure) in try body(front, payload) }
        }
    }

    /// Lends the frame in one piece.
    package mutating func withBytes<Result: ~Copyable>(_ body: (Span<UInt8>) -> Result) -> Result {
        join()
        return body(front.span)
    }

    /// Moves the payload behind the head; the lengths stay as they are.
    private mutating func join() {
        guard !payload.isEmpty else { return }
        front.append(contentsOf: payload)
        payload.removeAll(keepingCapacity: payload.capacity <= Self.keptBytes)
    }

    // MARK: Contents

    /// JSON of the head, or a part of it.
    package mutating func raw(_ json: StaticString) {
        // A StaticString's bytes outlive everything.
        front.append(contentsOf: unsafe UnsafeBufferPointer(start: json.utf8Start, count: json.utf8CodeUnitCount))
    }

    /// JSON of the head, or a part of it.
    package mutating func raw(_ json: [UInt8]) {
        front.append(contentsOf: json)
    }

    /// JSON of the head up to a value, and the value: a whole number.
    package mutating func raw(_ json: StaticString, _ value: some BinaryInteger) {
        raw(json)
        integer(value)
    }

    /// JSON of the head up to a value, and the value: `true` or `false`.
    package mutating func raw(_ json: StaticString, _ value: Bool) {
        raw(json)
        bool(value)
    }

    /// JSON of the head up to a value, and the value: a string.
    package mutating func raw(_ json: StaticString, _ text: String) {
        raw(json)
        string(text)
    }

    /// JSON of the head up to a value, and the value: a string, which must be UTF-8.
    package mutating func raw(_ json: StaticString, _ utf8: UnsafeRawBufferPointer) {
        raw(json)
        string(utf8)
    }

    /// JSON of the head up to the length of bytes of the payload, and the two.
    package mutating func raw(_ json: StaticString, bytes: crudd_bytes) {
        raw(json)
        self.bytes(bytes)
    }

    /// An array.
    package mutating func array<Element>(
        _ elements: some Sequence<Element>, _ write: (inout FrameWriter, Element) -> Void
    ) {
        var isFirst = true
        raw("[")
        for element in elements {
            if !isFirst { raw(",") }
            isFirst = false
            write(&self, element)
        }
        raw("]")
    }

    /// A whole number.
    package mutating func integer(_ value: some BinaryInteger) {
        if value < 0 { front.append(UInt8(ascii: "-")) }
        var rest = UInt64(value.magnitude)
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var start = digits.count
            repeat {
                start -= 1
                digits.initializeElement(at: start, to: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
                rest /= 10
            } while rest > 0
            front.append(contentsOf: UnsafeBufferPointer(rebasing: UnsafeBufferPointer(digits)[start...]))
        }
    }

    /// `true` or `false`.
    package mutating func bool(_ value: Bool) {
        raw(value ? "true" : "false")
    }

    /// A string with this value, which must be UTF-8.
    package mutating func string(_ utf8: UnsafeRawBufferPointer) {
        front.appendJSONString(utf8)
    }

    /// A string with this value.
    package mutating func string(_ text: String) {
        front.appendJSONString(text.utf8)
    }

    /// Bytes of the payload: their length stands in the head.
    package mutating func bytes(_ bytes: UnsafeRawBufferPointer) {
        integer(bytes.count)
        payload.append(contentsOf: bytes)
    }

    /// Bytes of the payload: their length stands in the head.
    package mutating func bytes(_ bytes: crudd_bytes) {
        self.bytes(bytes.buffer)
    }
}
