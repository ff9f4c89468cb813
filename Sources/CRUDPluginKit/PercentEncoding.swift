/// Names as ASCII text: letters, digits and some punctuation stand for themselves, and `%XX` (capital digits) for every
/// other byte.
///
/// Each name has one spelling, and ``decode(_:)`` takes no other: no two texts stand for one name.
public struct PercentEncoding: Sendable {
    /// By byte.
    private let unescaped: [Bool]

    /// - Parameter punctuation: the ASCII characters that stand for themselves beside letters and digits; not `%`.
    public init(punctuation: String) {
        unescaped = (0...255).map { Self.isAlphanumeric($0) || punctuation.utf8.contains($0) }
    }

    /// Whether a byte stands for itself.
    public func isUnescaped(_ byte: UInt8) -> Bool { unescaped[Int(byte)] }

    /// Whether a byte is an ASCII letter or digit.
    public static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }

    public func encode(_ name: RawSpan) -> [UInt8] {
        let name = Span<UInt8>(_bytes: name)
        var text: [UInt8] = []
        text.reserveCapacity(name.count)
        for index in name.indices {
            let byte = name[index]
            if isUnescaped(byte) {
                text.append(byte)
            } else {
                text += [UInt8(ascii: "%"), Self.digits[Int(byte >> 4)], Self.digits[Int(byte & 15)]]
            }
        }
        return text
    }

    /// - Returns: nil for text that ``encode(_:)`` does not make.
    public func decode(_ text: RawSpan) -> [UInt8]? {
        let text = Span<UInt8>(_bytes: text)
        var name: [UInt8] = []
        name.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            if isUnescaped(text[index]) {
                name.append(text[index])
                index += 1
                continue
            }
            guard text[index] == UInt8(ascii: "%"), index + 2 < text.count,
                let high = Self.digits.firstIndex(of: text[index + 1]),
                let low = Self.digits.firstIndex(of: text[index + 2]), !isUnescaped(UInt8(high << 4 | low))
            else { return nil }
            name.append(UInt8(high << 4 | low))
            index += 3
        }
        return name
    }

    private static let digits = Array("0123456789ABCDEF".utf8)
}
