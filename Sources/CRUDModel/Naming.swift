/// The rule for ids and for names of collections: UTF-8 of limited length without control characters.
package enum Naming {
    /// The most bytes of a record's id.
    package static let maximumIDBytes = 512
    /// The most bytes of a collection's name.
    package static let maximumCollectionNameBytes = 128
    /// The most bytes of a revision.
    package static let maximumRevisionBytes = 64

    /// How an id or name of at most `maximum` bytes violates the rule, as the end of a sentence; nil if it does not.
    ///
    /// - Parameter bytes: well-formed UTF-8, as a JSON scanner's strings are.
    package static func violation(_ bytes: Span<UInt8>, maximum: Int) -> String? {
        if bytes.isEmpty { return "is empty" }
        if bytes.count > maximum { return "is longer than \(maximum) bytes" }
        for index in bytes.indices where bytes[index] < 0x20 || bytes[index] == 0x7F {
            return "contains a control character"
        }
        return nil
    }
}
