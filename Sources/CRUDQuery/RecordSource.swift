package import CRUDModel

/// A record that a scan has found. Its bytes are valid until the visitor returns.
package struct FoundRecord {
    package var id: UnsafeRawBufferPointer
    /// The item in its stored form; empty where the scan does not ask for items.
    package var item: UnsafeRawBufferPointer
    package var revision: UnsafeRawBufferPointer
    /// Milliseconds since 1970-01-01 UTC; 0: never.
    package var expiresAt: Int64
    package var sequence: UInt64
    /// Where it stands in the storage's own order, in a scan of ``RecordScan/Order/any``; 0: they come by id.
    package var position: UInt64
    /// Whether it has been removed: id and sequence alone mean anything. Only in a scan by sequence.
    package var isRemoved: Bool

    package init(
        id: UnsafeRawBufferPointer, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer,
        expiresAt: Int64 = 0, sequence: UInt64 = 0, position: UInt64 = 0, isRemoved: Bool = false
    ) {
        self.id = id
        self.item = item
        self.revision = revision
        self.expiresAt = expiresAt
        self.sequence = sequence
        self.position = position
        self.isRemoved = isRemoved
    }
}

/// Receives the records of a scan, one after the other.
package protocol RecordVisitor: AnyObject {
    /// - Returns: whether further records are wanted.
    func visit(_ record: FoundRecord) -> Bool
}

/// Which records of a collection are scanned, and in which order.
package struct RecordScan: Sendable {
    package enum Order: Sendable, Equatable {
        /// By id, ascending by byte.
        case id
        /// By key of the index with that number, then by id, both ascending by byte. Records without a key are left
        /// out.
        case key(index: Int)
        /// Only the records that have no key in the index with that number, by id.
        case unkeyed(index: Int)
        /// By sequence number, what was removed included. Records without one are left out.
        case sequence
        /// Only the records that have no sequence number, by id.
        case unsequenced
        /// In whatever order is cheapest: that of the storage, or by id. Bounds are those of ids.
        case any
    }

    package var order: Order
    /// The least id or key, included; empty: no bound. For ids it is valid UTF-8.
    package var lower: [UInt8]
    /// Above the greatest id or key; empty: no bound. For ids it is valid UTF-8.
    package var upper: [UInt8]
    /// The least sequence number, included.
    package var lowerSequence: UInt64 = 0
    /// Above the greatest sequence number; 0: no bound.
    package var upperSequence: UInt64 = 0
    /// The whole order reversed, ids of equal keys included.
    package var isReversed = false
    /// Only records behind this one, in the direction of the scan. By id and unkeyed the key is empty.
    package var after: (key: [UInt8], id: [UInt8])?
    /// In any order: only records behind this position; 0: `after` says it.
    package var afterPosition: UInt64 = 0
    /// At most so many records; 0: no limit.
    package var limit = 0
    package var withItems = true

    package init(_ order: Order, lower: [UInt8] = [], upper: [UInt8] = []) {
        self.order = order
        self.lower = lower
        self.upper = upper
    }

    /// The records whose ids begin with `prefix`, by id.
    package init(idPrefix prefix: [UInt8]) {
        self.init(.id, lower: prefix, upper: Self.successor(ofPrefix: prefix))
    }

    /// The least text above all that begin with `prefix`, as UTF-8; empty where there is none.
    private static func successor(ofPrefix prefix: [UInt8]) -> [UInt8] {
        var scalars = String(decoding: prefix, as: UTF8.self).unicodeScalars
        while let last = scalars.popLast() {
            // No scalar has a value among the surrogates.
            guard let next = Unicode.Scalar(last.value == 0xD7FF ? 0xE000 : last.value + 1) else { continue }
            scalars.append(next)
            return Array(String(scalars).utf8)
        }
        return []
    }
}

/// The records of one collection.
///
/// All calls during one slice of an execution see one snapshot; each slice has its own.
package protocol RecordSource: AnyObject {
    /// Shows records to a visitor until it wants no more.
    func scan(_ scan: RecordScan, into visitor: any RecordVisitor) throws(CRUDError)

    /// How many records a scan by id, by key or of unkeyed records has; `after` and `isReversed` do not matter.
    ///
    /// - Parameter limit: counting may stop there; 0: no limit.
    func count(_ scan: RecordScan, limit: Int) throws(CRUDError) -> Int
}
