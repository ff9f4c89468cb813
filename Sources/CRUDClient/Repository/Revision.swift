/// The version of a record: every successful write gives the record a revision that it never had before.
///
/// It is opaque, has at most 64 bytes, and must be compared for equality only.
public struct Revision: Sendable, CustomStringConvertible {
    /// The daemon's text of the revision.
    public let text: String

    public init(_ text: String) {
        self.text = text
    }

    public var description: String { text }
}

extension Revision: Hashable {
    // By bytes, because String's == ignores the difference between canonically equivalent texts.

    public static func == (left: Revision, right: Revision) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}
