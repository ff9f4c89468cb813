import CRUDJSON

/// A frame of the child protocol under construction: four bytes of length, big-endian, then JSON.
///
/// It writes what it is told, commas and brackets included, since most of a frame is the same each time.
package struct FrameWriter {
    /// The frame, its length in front.
    package private(set) var bytes: [UInt8] = []

    /// How many bytes the length in front takes.
    package static let headerBytes = 4
    /// A frame that was larger does not keep its memory.
    private static let modestBytes = 1 << 20

    package init() {}

    /// How many bytes of JSON there are so far.
    package var count: Int { bytes.count - Self.headerBytes }

    /// Begins another frame.
    package mutating func begin() {
        bytes.removeAll(keepingCapacity: bytes.capacity <= Self.modestBytes)
        bytes.append(contentsOf: repeatElement(0, count: Self.headerBytes))
    }

    /// Takes back what was written after ``count`` was `count`.
    package mutating func truncate(to count: Int) {
        bytes.removeLast(max(0, self.count - count))
    }

    /// Sets the length; the frame can be sent now.
    package mutating func end() {
        withUnsafeBytes(of: UInt32(clamping: count).bigEndian) { length in
            for (index, byte) in length.enumerated() { bytes[index] = byte }
        }
    }

    // MARK: Contents

    /// JSON, or part of it.
    package mutating func raw(_ json: StaticString) {
        // A StaticString's bytes outlive everything.
        bytes.append(contentsOf: unsafe UnsafeBufferPointer(start: json.utf8Start, count: json.utf8CodeUnitCount))
    }

    /// JSON, or part of it.
    package mutating func raw(_ json: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: json)
    }

    /// JSON, or part of it.
    package mutating func raw(_ json: [UInt8]) {
        bytes.append(contentsOf: json)
    }

    /// A whole number.
    package mutating func integer(_ value: some UnsignedInteger) {
        var place: UInt64 = 1
        let value = UInt64(value)
        while value / place >= 10 { place *= 10 }
        while place > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(value / place % 10))
            place /= 10
        }
    }

    /// A whole number.
    package mutating func integer(_ value: Int) {
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        integer(value.magnitude)
    }

    /// A string with this value, which must be UTF-8.
    package mutating func string(_ utf8: UnsafeRawBufferPointer) {
        bytes.append(UInt8(ascii: "\""))
        if utf8.contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) {
            for byte in utf8 { bytes.appendJSONEscaped(byte) }
        } else {
            bytes.append(contentsOf: utf8)
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// A string with this value.
    package mutating func string(_ text: String) {
        bytes.appendJSONString(text.utf8)
    }

    /// A string that spells bytes in base64.
    package mutating func base64(_ data: UnsafeRawBufferPointer) {
        bytes.append(UInt8(ascii: "\""))
        Base64.append(data, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }
}
