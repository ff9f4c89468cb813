/// The rule that ids and collection names share: UTF-8, so many bytes, no control characters.
package enum Naming {
    /// The most bytes of a record's id.
    package static let maximumIDBytes = 512
    /// The most bytes of a collection's name.
    package static let maximumCollectionNameBytes = 128
    /// The most bytes of a revision.
    package static let maximumRevisionBytes = 64

    /// Why `bytes` are no id or name of at most `maximum` bytes; nil if they are one.
    ///
    /// The bytes must be UTF-8 already, as a JSON scanner's are.
    package static func fault(_ bytes: Span<UInt8>, maximum: Int) -> String? {
        if bytes.isEmpty { return "is empty" }
        if bytes.count > maximum { return "is longer than \(maximum) bytes" }
        for index in bytes.indices where bytes[index] < 0x20 || bytes[index] == 0x7F {
            return "contains a control character"
        }
        return nil
    }
}
