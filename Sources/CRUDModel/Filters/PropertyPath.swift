/// The path of a property in an item: names of members, outermost first.
///
/// As text the names are joined by dots, `address.city`; a dot in a name is written `\.` and a backslash `\\`. Names
/// are compared by code point. Each is the name of an object's member: `0` is not an index into an array.
public struct PropertyPath: Sendable {
    /// At least one name; it may be empty.
    public let names: [String]

    /// - Parameter names: at least one.
    public init(names: [String]) {
        precondition(!names.isEmpty, "a property path has at least one name")
        self.names = names
    }

    /// A path from its dotted text; nil if a backslash precedes anything but a dot or a backslash.
    public init?(text: String) {
        self.init(utf8: text.utf8)
    }

    /// A path from its dotted text in UTF-8; nil if a backslash precedes anything but a dot or a backslash.
    package init?(utf8 text: some Sequence<UInt8>) {
        var names: [String] = []
        var name: [UInt8] = []
        var isEscaped = false
        for byte in text {
            switch byte {
            case UInt8(ascii: "."), UInt8(ascii: "\\"):
                if isEscaped {
                    name.append(byte)
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else {
                    names.append(String(decoding: name, as: UTF8.self))
                    name.removeAll(keepingCapacity: true)
                }
            default:
                guard !isEscaped else { return nil }
                name.append(byte)
            }
        }
        guard !isEscaped else { return nil }
        self.names = names + [String(decoding: name, as: UTF8.self)]
    }

    /// The dotted text.
    public var text: String {
        var bytes: [UInt8] = []
        for (index, name) in names.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ".")) }
            for byte in name.utf8 {
                if byte == UInt8(ascii: ".") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension PropertyPath: CustomStringConvertible {
    public var description: String { text }
}

extension PropertyPath: Hashable {
    // Not synthesised, because String's == ignores the difference between canonically equivalent names.
    public static func == (left: PropertyPath, right: PropertyPath) -> Bool {
        left.names.elementsEqual(right.names) { $0.utf8.elementsEqual($1.utf8) }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(names.count)
        for name in names { hasher.combine(text: name) }
    }
}
