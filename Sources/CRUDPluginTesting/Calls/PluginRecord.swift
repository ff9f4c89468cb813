/// A record as a plugin stores it.
///
/// Two are equal if all their bytes are, whatever Unicode says of them, and if they expire at the same time; their
/// sequence numbers do not count. Of one that was removed only the id does.
package struct PluginRecord: Equatable, Sendable {
    package let id: String
    package let bytes: [UInt8]
    package let revision: String
    /// Milliseconds since 1970-01-01 UTC; 0: never.
    package let expiresAt: Int64
    /// 0: none.
    package let sequence: UInt64
    /// Whether it was removed, with that sequence number.
    package var isRemoved = false

    package init(_ id: String, bytes: [UInt8], revision: String = "1", expiresAt: Int64 = 0, sequence: UInt64 = 0) {
        self.id = id
        self.bytes = bytes
        self.revision = revision
        self.expiresAt = expiresAt
        self.sequence = sequence
    }

    package init(
        _ id: String, _ item: String, revision: String = "1", expiresAt: Int64 = 0, sequence: UInt64 = 0
    ) {
        self.init(id, bytes: Array(item.utf8), revision: revision, expiresAt: expiresAt, sequence: sequence)
    }

    /// A record that was removed.
    package static func removed(_ id: String, sequence: UInt64) -> PluginRecord {
        var record = PluginRecord(id, bytes: [], revision: "", sequence: sequence)
        record.isRemoved = true
        return record
    }

    /// The item as a text.
    package var item: String { String(decoding: bytes, as: UTF8.self) }

    /// The record as it is emitted where items were not asked for.
    var withoutItem: PluginRecord {
        isRemoved ? self : PluginRecord(id, bytes: [], revision: revision, expiresAt: expiresAt, sequence: sequence)
    }

    package static func == (left: PluginRecord, right: PluginRecord) -> Bool {
        left.id.utf8.elementsEqual(right.id.utf8) && left.bytes == right.bytes
            && left.revision.utf8.elementsEqual(right.revision.utf8) && left.expiresAt == right.expiresAt
            && left.isRemoved == right.isRemoved
    }
}

extension PluginRecord: CustomStringConvertible {
    package var description: String {
        if isRemoved { return "id \(id.debugDescription), removed" }
        let expiry = expiresAt == 0 ? "" : ", expires at \(expiresAt)"
        return "id \(id.debugDescription), revision \(revision.debugDescription), item \(Excerpt(bytes))\(expiry)"
    }
}
