import CRUDDigest
import CRUDModel

/// An id or the name of a collection, as a file's name spells it.
///
/// ASCII letters, digits, `-` and `_` stand for themselves and `%XX` for every other byte, so that no name is hidden,
/// means another directory, or is taken for an option. What would be longer than ``maximumBytes`` keeps its first
/// ``keptBytes`` and ends in `%~` and the SHA-256 of the whole spelling; the id is kept in an attribute of the file
/// then. (The last escape of the bytes kept may be cut; nothing reads them back.)
struct EncodedName {
    static let maximumBytes = 200
    private static let keptBytes = 100
    private static let digestBytes = 64

    let text: String
    /// Whether the text says just the beginning.
    let isShortened: Bool

    init(_ name: some Sequence<UInt8>) {
        var whole: [UInt8] = []
        for byte in name {
            if Self.standsForItself(byte) {
                whole.append(byte)
            } else {
                whole += [UInt8(ascii: "%"), Self.digits[Int(byte >> 4)], Self.digits[Int(byte & 15)]]
            }
        }
        isShortened = whole.count > Self.maximumBytes
        text =
            isShortened
            ? String(decoding: whole.prefix(Self.keptBytes), as: UTF8.self) + "%~" + SHA256.digest(whole)
            : String(decoding: whole, as: UTF8.self)
    }

    /// What the text of a file's name stands for.
    enum Meaning {
        case name([UInt8])
        /// The beginning of something.
        case shortened
        /// No text that this type makes.
        case nothing
    }

    /// - Parameter maximum: how long a name may be.
    static func meaning(of text: some Collection<UInt8>, maximum: Int) -> Meaning {
        let text = Array(text)
        if text.count == keptBytes + 2 + digestBytes, text[keptBytes...].starts(with: "%~".utf8) { return .shortened }
        guard text.count <= maximumBytes, let name = decode(text), Naming.fault(name.span, maximum: maximum) == nil,
            isUTF8(name)
        else { return .nothing }
        return .name(name)
    }

    /// Nil for any text that a name would not be spelt with, so that no two files stand for one.
    private static func decode(_ text: [UInt8]) -> [UInt8]? {
        var name: [UInt8] = []
        var index = 0
        while index < text.count {
            if standsForItself(text[index]) {
                name.append(text[index])
                index += 1
                continue
            }
            guard text[index] == UInt8(ascii: "%"), index + 2 < text.count,
                let high = digits.firstIndex(of: text[index + 1]), let low = digits.firstIndex(of: text[index + 2]),
                !standsForItself(UInt8(high << 4 | low))
            else { return nil }
            name.append(UInt8(high << 4 | low))
            index += 3
        }
        return name
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    private static func standsForItself(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    private static func isUTF8(_ bytes: [UInt8]) -> Bool {
        do {
            _ = try UTF8Span(validating: bytes.span)
            return true
        } catch {
            return false
        }
    }
}
