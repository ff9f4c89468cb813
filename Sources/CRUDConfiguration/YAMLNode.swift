import CRUDModel

/// A value of a YAML document, and where it begins.
///
/// Scalars are kept as text: the key to which they belong determines their type.
struct YAMLNode: Sendable {
    enum Content: Sendable {
        /// UTF-8, without quotes and escapes.
        case scalar([UInt8], isPlain: Bool)
        case sequence([YAMLNode])
        /// In the order of the document, no key twice.
        case mapping([Entry])
        /// Something invalid that has been reported already, and is not reported again.
        case invalid
    }

    struct Entry: Sendable {
        let key: [UInt8]
        let keyPosition: SourcePosition
        let value: YAMLNode
    }

    /// A block mapping or sequence begins at its first key or dash.
    let position: SourcePosition
    /// Where it ends: for a block mapping or sequence, where the text after it begins.
    let end: SourcePosition
    let content: Content

    /// The value under a key of a mapping, or at the index of a sequence that a decimal number names.
    func child(_ name: [UInt8]) -> YAMLNode? {
        switch content {
        case .mapping(let entries): return entries.first { $0.key == name }?.value
        case .sequence(let elements):
            guard name.allSatisfy(isDigit), let index = Int(String(decoding: name, as: UTF8.self)) else { return nil }
            return elements.indices.contains(index) ? elements[index] : nil
        case .scalar, .invalid: return nil
        }
    }

    /// A short description for a message.
    var summary: String {
        switch content {
        case .scalar(let text, let isPlain): text.isEmpty && isPlain ? "nothing" : quoted(text)
        case .sequence: "a list"
        case .mapping: "a mapping"
        case .invalid: "an error"
        }
    }
}
