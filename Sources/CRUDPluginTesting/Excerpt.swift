/// A value for a line of the report, shortened to what a reader can use.
struct Excerpt: CustomStringConvertible {
    private static let maximumCharacters = 100

    let description: String

    init(_ value: some Any) {
        description = Self.cut(Self.text(of: value))
    }

    /// Bytes as a text; what is not valid UTF-8 is escaped.
    init(_ bytes: [UInt8]) {
        let text = String(decoding: bytes.prefix(Self.maximumCharacters * 4), as: UTF8.self)
        description = "\(Self.cut(text.debugDescription)) (\(bytes.count) B)"
    }

    /// What is in an optional, without the word for it.
    private static func text(of value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        guard mirror.displayStyle == .optional else { return String(describing: value) }
        return mirror.children.first.map { text(of: $0.value) } ?? "none"
    }

    private static func cut(_ text: String) -> String {
        text.count <= maximumCharacters ? text : "\(text.prefix(maximumCharacters))…"
    }
}
