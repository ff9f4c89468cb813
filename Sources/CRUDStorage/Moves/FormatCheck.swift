import CRUDFormats
package import CRUDModel

/// How many records of a collection another format cannot hold.
package struct FormatCheck: Sendable {
    /// How many records have been tried.
    package private(set) var checked = 0
    /// How many of those it cannot hold, for which a move would wait.
    package private(set) var refused = 0
    /// The first of them, and why.
    package private(set) var first: [(id: [UInt8], reason: String)] = []
    /// Whether all records have been tried.
    package private(set) var isComplete = false

    package static let maximumNamed = 10
    private static let maximumTextBytes = 64 << 20

    /// Encodes each record of a collection as a move to another format would, and stores nothing. At the deadline the
    /// check ends, after the page that is being read at most.
    package init(
        of name: [UInt8], in backend: Backend, from format: CollectionRule.Format, to target: CollectionRule.Format,
        until deadline: ContinuousClock.Instant
    ) {
        let layout = CollectionLayout(indexPaths: [], retention: nil)
        var transcoder = ItemTranscoder(
            from: Codec(format), to: Codec(target), BackendCollection.NumberedLayout(layout: layout, number: 0))
        var isInTime = true
        do throws(CRUDError) {
            try backend.forEachPage(of: name, format, within: deadline - .now) { records in
                for record in records {
                    isInTime = ContinuousClock.now < deadline
                    guard isInTime else { return false }
                    check(record, &transcoder)
                }
                return true
            }
            isComplete = isInTime
        } catch {
            isComplete = false
        }
    }

    private mutating func check(_ record: Backend.StoredRecord, _ transcoder: inout ItemTranscoder) {
        checked += 1
        do throws(CRUDError) {
            guard !record.item.isEmpty else { throw CRUDError(.corrupt, "its original cannot be decoded") }
            _ = try transcoder.encode(record.item, isSame: false, Self.maximumTextBytes)
        } catch {
            refused += 1
            if first.count < Self.maximumNamed { first.append((record.id, error.message)) }
        }
    }
}
