/// What a record's writes are told apart by: every successful write gives the record a revision that it never had before.
///
/// It is opaque, at most 64 bytes, and to be compared for equality only.
public struct Revision: Sendable, CustomStringConvertible {
    /// The revision as the daemon spells it.
    public let text: String

    public init(_ text: String) {
        self.text = text
    }

    public var description: String { text }
}

extension Revision: Hashable {
    // By bytes: String's own equality would take canonically equivalent texts for one.

    public static func == (left: Revision, right: Revision) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}
