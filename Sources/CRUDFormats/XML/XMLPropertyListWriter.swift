import CRUDJSON
import CRUDModel

/// Writes an XML property list as Apple's tools do (https://www.apple.com/DTDs/PropertyList-1.0.dtd), an element to a
/// line, indented with tabs where neither item nor depth is so great that they would be most of it.
struct XMLPropertyListWriter: PropertyListSink {
    var bytes: [UInt8] = []
    private var depth = 0
    /// Where the content of the last container begins, while it is empty; otherwise −1.
    private var emptySince = -1

    private let maximumIndentation: Int

    /// The longest item whose lines are indented.
    private static let maximumIndentedBytes = 1 << 20

    /// - Parameter itemBytes: the size of the item that is going to be written.
    init(itemBytes: Int) {
        maximumIndentation = itemBytes <= Self.maximumIndentedBytes ? 8 : 0
    }

    /// The most stored bytes that an item of `itemBytes` bytes can take.
    static func maximumBytes(ofItem itemBytes: Int) -> Int {
        // `[]` around others are two lines with eight tabs, `1,` is an `<integer>` with a line of its own.
        256 + max(17 * min(itemBytes, maximumIndentedBytes), 11 * itemBytes)
    }

    /// Everything before the value.
    mutating func begin() {
        append(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">

            """)
    }

    /// Everything behind the value.
    mutating func finish() {
        append("</plist>\n")
    }

    mutating func beginDictionary() { open("<dict>\n") }

    mutating func endDictionary() { close("dict") }

    mutating func beginArray() { open("<array>\n") }

    mutating func endArray() { close("array") }

    mutating func key(_ name: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        try element("<key>", name, "</key>\n", &work)
    }

    mutating func string(_ value: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        try element("<string>", value, "</string>\n", &work)
    }

    mutating func integer(_ value: Int128) {
        indent()
        append("<integer>")
        bytes.append(decimal: value)
        append("</integer>\n")
    }

    mutating func real(_ value: Double) {
        indent()
        append("<real>\(value)</real>\n")
    }

    mutating func boolean(_ value: Bool) {
        indent()
        append(value ? "<true/>\n" : "<false/>\n")
    }

    // MARK: Parts

    private mutating func append(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    private mutating func indent() {
        for _ in 0..<min(depth, maximumIndentation) { bytes.append(UInt8(ascii: "\t")) }
    }

    private mutating func open(_ tag: String) {
        indent()
        append(tag)
        depth += 1
        emptySince = bytes.count
    }

    private mutating func close(_ name: String) {
        depth -= 1
        if bytes.count == emptySince {
            // `<dict>` becomes `<dict/>`.
            bytes.removeLast(2)
            append("/>\n")
        } else {
            indent()
            append("</\(name)>\n")
        }
    }

    private mutating func element(
        _ start: String, _ text: Span<UInt8>, _ end: String, _ work: inout Work
    ) throws(CRUDError) {
        indent()
        append(start)
        work.begin(at: 0)
        for index in text.indices {
            guard work.passes(index) else { return }
            switch text[index] {
            case UInt8(ascii: "&"): append("&amp;")
            case UInt8(ascii: "<"): append("&lt;")
            case UInt8(ascii: ">"): append("&gt;")
            case let byte where XMLCharacter.isForbidden(text, at: index):
                throw CRUDError(.unsupported, "XML cannot represent the character U+\(Self.code(byte))")
            case UInt8(ascii: "\r"):
                // As itself, XML would read it as a line feed (https://www.w3.org/TR/xml/#sec-line-ends).
                append("&#13;")
            case let byte: bytes.append(byte)
            }
        }
        work.end(at: text.count)
        append(end)
    }

    /// The code point of a character that XML forbids, by its first byte.
    private static func code(_ byte: UInt8) -> String {
        guard byte < 0x20 else { return "FFFE or U+FFFF" }
        return (byte < 0x10 ? "000" : "00") + String(byte, radix: 16, uppercase: true)
    }
}

/// Which characters XML 1.0 allows (https://www.w3.org/TR/xml/#charsets).
enum XMLCharacter {
    /// Whether XML forbids the character that begins at `index` of well-formed UTF-8.
    static func isForbidden(_ text: Span<UInt8>, at index: Int) -> Bool {
        switch text[index] {
        case 0x09, 0x0A, 0x0D: false
        case 0..<0x20: true
        case 0xEF: index + 2 < text.count && text[index + 1] == 0xBF && text[index + 2] >= 0xBE
        default: false
        }
    }

    static func isWhiteSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    /// Whether a character of that code point is one that XML allows.
    static func isAllowed(_ code: UInt32) -> Bool {
        switch code {
        case 0x09, 0x0A, 0x0D, 0x20...0xD7FF, 0xE000...0xFFFD, 0x10000...0x10FFFF: true
        default: false
        }
    }
}
