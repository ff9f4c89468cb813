/// Bytes as text ([RFC 4648](https://www.rfc-editor.org/rfc/rfc4648#section-4), section 4, with padding).
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")

    /// Appends the text of bytes.
    static func append(_ data: UnsafeRawBufferPointer, to text: inout [UInt8]) {
        text.reserveCapacity(text.count + (data.count + 2) / 3 * 4)
        var index = 0
        while index < data.count {
            let rest = data.count - index
            let group =
                UInt32(data[index]) << 16 | (rest > 1 ? UInt32(data[index + 1]) << 8 : 0)
                | (rest > 2 ? UInt32(data[index + 2]) : 0)
            text.append(alphabet[Int(group >> 18)])
            text.append(alphabet[Int(group >> 12 & 63)])
            text.append(rest > 1 ? alphabet[Int(group >> 6 & 63)] : padding)
            text.append(rest > 2 ? alphabet[Int(group & 63)] : padding)
            index += 3
        }
    }

    /// The bytes that a text spells; nil if it is no base64.
    static func bytes(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        guard text.count.isMultiple(of: 4) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var index = 0
        while index < text.count {
            let isLast = index + 4 == text.count
            let padded = !isLast || text[index + 3] != padding ? 0 : text[index + 2] != padding ? 1 : 2
            var group: UInt32 = 0
            for offset in 0..<4 {
                guard let digit = offset < 4 - padded ? digit(text[index + offset]) : 0 else { return nil }
                group = group << 6 | UInt32(digit)
            }
            // Bits that no byte takes must be zero, so that every text has one meaning and every meaning one text.
            guard group & (1 << (8 * UInt32(padded)) - 1) == 0 else { return nil }
            for offset in 0..<3 - padded { bytes.append(UInt8(truncatingIfNeeded: group >> (16 - 8 * UInt32(offset)))) }
            index += 4
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
