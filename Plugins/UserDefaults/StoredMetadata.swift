import CRUDPluginKit

/// What there is of a record beside its item, as the value of the key beside the item's: the item's digest, the
/// revision, the sequence number and, if the record expires, when it does, with a space between each.
///
/// The digest tells whether the item is still the one that was written with the revision. If somebody has edited it, or
/// there is no such key, the item's digest is its revision, and it has no sequence number. (Values of earlier versions
/// end with the revision.)
struct StoredMetadata {
    private static let digestDigits = 32

    let revision: [UInt8]
    let expiresAt: Int64
    let sequence: UInt64

    /// - Parameter value: of the key; nil: there is none.
    init(_ value: Any?, of item: [UInt8]) {
        let digest = Self.digest(item)
        let parts = (value as? String)?.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false) ?? []
        func number<Number: FixedWidthInteger>(_ position: Int) -> Number {
            position < parts.count ? Number(String(decoding: parts[position], as: UTF8.self)) ?? 0 : 0
        }
        expiresAt = number(3)
        let revision = parts.count > 1 ? Array(parts[1]) : []
        let isUnedited = parts.first?.elementsEqual(digest.utf8) ?? false
        if isUnedited, RecordRules.isValidRevision(revision.span.bytes) {
            self.revision = revision
            sequence = number(2)
        } else {
            self.revision = Array(digest.utf8)
            sequence = 0
        }
    }

    /// The value for a record.
    static func value(of record: RecordTable.Record) -> String {
        let revision = String(decoding: record.revision, as: UTF8.self)
        let expiry = record.expiresAt == 0 ? "" : " \(record.expiresAt)"
        return "\(digest(record.item)) \(revision) \(record.sequence)\(expiry)"
    }

    private static func digest(_ item: [UInt8]) -> String {
        String(sha256(item).prefix(digestDigits))
    }
}
