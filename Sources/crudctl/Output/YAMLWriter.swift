/// Writes JSON values as YAML 1.2 in block style (https://yaml.org/spec/1.2.2/).
///
/// A string is plain only if no schema could interpret it as anything else; any other is double-quoted, a style in
/// which YAML has JSON's escapes.
enum YAMLWriter {
    static func text(of value: JSONValue) -> String {
        var text = ""
        write(value, indent: 0, to: &text)
        return text
    }

    /// Writes `value` and a line end at the end of `text`, which is the beginning of a line unless `value` is a scalar.
    private static func write(_ value: JSONValue, indent: Int, to text: inout String) {
        switch value {
        case .array(let elements) where !elements.isEmpty:
            for (index, element) in elements.enumerated() {
                if index > 0 { text += margin(indent) }
                text += "- "
                write(element, indent: indent + 2, to: &text)
            }
        case .object(let members) where !members.isEmpty:
            for (index, member) in members.enumerated() {
                if index > 0 { text += margin(indent) }
                write(member, indent: indent, to: &text)
            }
        default: text += scalar(value) + "\n"
        }
    }

    private static func write(_ member: (key: String, value: JSONValue), indent: Int, to text: inout String) {
        let key = scalar(.string(member.key))
        // A key with its colon on the same line may have at most 1024 characters.
        text += key.unicodeScalars.count <= 1024 ? "\(key):" : "? \(key)\n\(margin(indent)):"
        guard member.value.isContainer, !member.value.isEmptyContainer else {
            text += " " + scalar(member.value) + "\n"
            return
        }
        text += "\n" + margin(indent + 2)
        write(member.value, indent: indent + 2, to: &text)
    }

    private static func margin(_ width: Int) -> String { String(repeating: " ", count: width) }

    private static func scalar(_ value: JSONValue) -> String {
        guard case .string(let string) = value else { return value.compact }
        return isPlain(string) ? string : quoted(string)
    }

    /// Words that some version of YAML does not interpret as strings.
    private static let words: Set<String> = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"]

    private static func isPlain(_ string: String) -> Bool {
        guard let first = string.utf8.first, isLetter(first), string.utf8.last != UInt8(ascii: " "),
            !words.contains(string.lowercased())
        else { return false }
        return string.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "/"), UInt8(ascii: "@"), UInt8(ascii: "+"), UInt8(ascii: " "):
                true
            default: isLetter(byte)
            }
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- UInt8(ascii: "a") < 26
    }

    /// The JSON string, with those characters escaped too that YAML does not allow.
    private static func quoted(_ string: String) -> String {
        var text = ""
        for scalar in JSONValue.quoted(string).unicodeScalars {
            switch scalar.value {
            case 0x7F...0x9F, 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
