extension JSONSlice {
    /// The value of a string, as UTF-8 without quotes and escapes.
    ///
    /// The slice must come from a ``JSONScanner`` over the same text, which has validated every escape.
    package func decodedString(_ text: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        appendDecodedString(text, to: &bytes)
        return bytes
    }

    /// As ``decodedString(_:)``.
    package func decodedString(_ text: Span<UInt8>, _ work: inout Work) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        appendDecodedString(text, to: &bytes, &work)
        return bytes
    }

    /// Appends the value of a string, as UTF-8 without quotes and escapes.
    package func appendDecodedString(_ text: Span<UInt8>, to bytes: inout [UInt8]) {
        var work = Work()
        appendDecodedString(text, to: &bytes, &work)
    }

    /// As ``appendDecodedString(_:to:)``.
    package func appendDecodedString(_ text: Span<UInt8>, to bytes: inout [UInt8], _ work: inout Work) {
        var index = start + 1
        let end = end - 1
        work.begin(at: index)
        defer { work.end(at: index) }
        if !hasEscapes {
            while index < end, work.passes(index) {
                let next = min(index + Work.interval, end)
                bytes.append(text.extracting(index..<next))
                index = next
            }
            return
        }
        while index < end, work.passes(index) {
            guard text[index] == UInt8(ascii: "\\") else {
                bytes.append(text[index])
                index += 1
                continue
            }
            switch text[index + 1] {
            case UInt8(ascii: "u"):
                var scalar = Self.unit(text, at: index + 2)
                index += 6
                if scalar & 0xFC00 == 0xD800 {
                    scalar = 0x10000 + (scalar & 0x3FF) << 10 + Self.unit(text, at: index + 2) & 0x3FF
                    index += 6
                }
                Self.append(scalar, to: &bytes)
                continue
            case UInt8(ascii: "b"): bytes.append(0x08)
            case UInt8(ascii: "f"): bytes.append(0x0C)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case let byte: bytes.append(byte)
            }
            index += 2
        }
    }

    /// Whether this string's value is `literal`, escapes decoded.
    package func equals(_ literal: StaticString, _ text: Span<UInt8>) -> Bool {
        let size = literal.utf8CodeUnitCount
        if hasEscapes {
            let bytes = decodedString(text)
            guard bytes.count == size else { return false }
            for index in 0..<size where bytes[index] != (unsafe literal.utf8Start[index]) { return false }
            return true
        }
        guard count == size + 2, start >= 0, end <= text.count else { return false }
        // A StaticString's bytes live as long as the process. What is loaded lies within both, as was checked above.
        let (bytes, other) = (text.bytes, UnsafeRawPointer(literal.utf8Start))
        func differs<Word: FixedWidthInteger & BitwiseCopyable>(at offset: Int, _: Word.Type) -> Bool {
            unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start + 1 + offset, as: Word.self)
                != other.loadUnaligned(fromByteOffset: offset, as: Word.self)
        }
        if size >= 8 {
            var offset = 0
            while offset + 8 < size {
                if differs(at: offset, UInt64.self) { return false }
                offset += 8
            }
            // The last word overlaps the one before it.
            return !differs(at: size - 8, UInt64.self)
        }
        if size >= 4 { return !differs(at: 0, UInt32.self) && !differs(at: size - 4, UInt32.self) }
        for offset in 0..<size where differs(at: offset, UInt8.self) { return false }
        return true
    }

    private static func unit(_ text: Span<UInt8>, at start: Int) -> UInt32 {
        var unit: UInt32 = 0
        for index in start..<start + 4 { unit = unit << 4 | UInt32(hexDigit(text[index]) ?? 0) }
        return unit
    }

    private static func append(_ scalar: UInt32, to bytes: inout [UInt8]) {
        switch scalar {
        case 0..<0x80:
            bytes.append(UInt8(truncatingIfNeeded: scalar))
        case 0x80..<0x800:
            bytes.append(0xC0 | UInt8(truncatingIfNeeded: scalar >> 6))
            bytes.append(0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F))
        case 0x800..<0x10000:
            bytes.append(0xE0 | UInt8(truncatingIfNeeded: scalar >> 12))
            bytes.append(0x80 | UInt8(truncatingIfNeeded: scalar >> 6 & 0x3F))
            bytes.append(0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F))
        default:
            bytes.append(0xF0 | UInt8(truncatingIfNeeded: scalar >> 18))
            bytes.append(0x80 | UInt8(truncatingIfNeeded: scalar >> 12 & 0x3F))
            bytes.append(0x80 | UInt8(truncatingIfNeeded: scalar >> 6 & 0x3F))
            bytes.append(0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F))
        }
    }
}

/// The value of a hexadecimal digit; nil for any other byte.
package func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
}

/// The length of the well-formed UTF-8 sequence at `start`; 0 if there is none.
///
/// The ranges are those of table 3-7 of the Unicode standard, "Well-Formed UTF-8 Byte Sequences".
package func wellFormedScalarLength(_ text: Span<UInt8>, at start: Int) -> Int {
    let length: Int
    var second: ClosedRange<UInt8> = 0x80...0xBF
    switch text[start] {
    case 0..<0x80: return 1
    case 0xC2...0xDF: length = 2
    case 0xE0: (length, second) = (3, 0xA0...0xBF)
    case 0xED: (length, second) = (3, 0x80...0x9F)
    case 0xE1...0xEF: length = 3
    case 0xF0: (length, second) = (4, 0x90...0xBF)
    case 0xF1...0xF3: length = 4
    case 0xF4: (length, second) = (4, 0x80...0x8F)
    default: return 0
    }
    guard start + length <= text.count, second.contains(text[start + 1]) else { return 0 }
    if length > 2, text[start + 2] & 0xC0 != 0x80 { return 0 }
    if length > 3, text[start + 3] & 0xC0 != 0x80 { return 0 }
    return length
}

extension JSONSlice {
    /// Whether this is a number without fraction and exponent.
    package func isInteger(_ text: Span<UInt8>) -> Bool {
        guard kind == .number else { return false }
        for index in range {
            switch text[index] {
            case UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): return false
            default: continue
            }
        }
        return true
    }
}
