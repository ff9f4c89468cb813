/// A parsed JSON text that keeps the text of every part. It is independent of the parser that it is used to test.
package struct JSON {
    package enum Content {
        case null
        case boolean(Bool)
        case number
        case string(String)
        case array([JSON])
        case object([Member])
    }

    /// A member of an object, in the order of the text.
    package struct Member {
        package let name: String
        package let value: JSON
    }

    private let bytes: ArraySlice<UInt8>
    package let content: Content

    init(_ bytes: ArraySlice<UInt8>, _ content: Content) {
        self.bytes = bytes
        self.content = content
    }

    /// - Throws: where `bytes` are not one JSON text.
    package init(parsing bytes: [UInt8]) throws {
        var parser = JSONParser(bytes)
        self = try parser.parse()
    }

    package init(parsing text: String) throws {
        try self.init(parsing: Array(text.utf8))
    }

    /// Its text.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    package var string: String? { if case .string(let value) = content { value } else { nil } }

    package var boolean: Bool? { if case .boolean(let value) = content { value } else { nil } }

    package var integer: Int? { if case .number = content { Int(text) } else { nil } }

    package var isNull: Bool { if case .null = content { true } else { false } }

    package var elements: [JSON]? { if case .array(let elements) = content { elements } else { nil } }

    package var members: [Member]? { if case .object(let members) = content { members } else { nil } }

    /// The last member of that name, compared by code point.
    package subscript(name: String) -> JSON? {
        members?.last { $0.name.utf8.elementsEqual(name.utf8) }?.value
    }

    /// Whether both are equal, regardless of the order of members; only the last of repeated members counts, and
    /// numbers are compared as text.
    package func means(_ other: JSON) -> Bool {
        switch (content, other.content) {
        case (.null, .null): return true
        case (.boolean(let mine), .boolean(let theirs)): return mine == theirs
        case (.number, .number): return bytes.elementsEqual(other.bytes)
        case (.string(let mine), .string(let theirs)): return mine.utf8.elementsEqual(theirs.utf8)
        case (.array(let mine), .array(let theirs)):
            return mine.count == theirs.count && zip(mine, theirs).allSatisfy { $0.means($1) }
        case (.object(let mine), .object(let theirs)):
            return theirs.allSatisfy { self[$0.name] != nil }
                && mine.allSatisfy { member in
                    guard let first = self[member.name], let second = other[member.name] else { return false }
                    return first.means(second)
                }
        default: return false
        }
    }

    /// A string as a JSON text.
    package static func quote(_ string: String) -> String {
        var text = "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\0"..<" ": text += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }

    /// The text without white space between its tokens.
    package static func compact(_ text: String) -> String {
        var result: [UInt8] = []
        var isInString = false
        var isEscaped = false
        for byte in text.utf8 {
            if isInString {
                isInString = isEscaped || byte != UInt8(ascii: "\"")
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
            } else {
                if [0x20, 0x09, 0x0A, 0x0D].contains(byte) { continue }
                isInString = byte == UInt8(ascii: "\"")
            }
            result.append(byte)
        }
        return String(decoding: result, as: UTF8.self)
    }
}
