import CRUDPluginKit

/// An id or the name of a collection, as a file's name spells it.
///
/// ASCII letters, digits, `-` and `_` stand for themselves and `%XX` for every other byte, so that no name is hidden,
/// means another directory, or is taken for an option. What would be longer than ``maximumBytes`` keeps its first
/// ``keptBytes`` and ends in `%~` and the SHA-256 of the whole spelling; the name itself is in an attribute of the file
/// then. (The last escape of the bytes kept may be cut; nothing decodes them.)
struct EncodedName {
    static let maximumBytes = 200
    private static let keptBytes = 100
    private static let digestBytes = 64
    private static let encoding = PercentEncoding(punctuation: "-_")

    let text: String
    /// Whether the text has just the beginning of the name.
    let isShortened: Bool

    init(_ name: RawSpan) {
        let whole = Self.encoding.encode(name)
        isShortened = whole.count > Self.maximumBytes
        text =
            isShortened
            ? String(decoding: whole.prefix(Self.keptBytes), as: UTF8.self) + "%~" + sha256(whole)
            : String(decoding: whole, as: UTF8.self)
    }

    /// What the text of a file's name stands for.
    enum Meaning {
        case name([UInt8])
        /// The beginning of a name.
        case shortened
        /// No text that this type makes.
        case nothing
    }

    /// - Parameter isValid: whether bytes are a name.
    static func meaning(of text: some Collection<UInt8>, isValid: (RawSpan) -> Bool) -> Meaning {
        let text = Array(text)
        if text.count == keptBytes + 2 + digestBytes, text[keptBytes...].starts(with: "%~".utf8) { return .shortened }
        guard text.count <= maximumBytes, let name = encoding.decode(text.span.bytes), isValid(name.span.bytes)
        else { return .nothing }
        return .name(name)
    }
}
