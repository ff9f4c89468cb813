package import CRUDModel
import CRUDPluginCalls
import CRUDQuery
import Synchronization

extension Backend {
    /// A record as it is stored.
    package typealias StoredRecord = (id: [UInt8], item: [UInt8])

    /// Reads all records of a collection in the order of their ids, in pages of some MiB, and waits for each page.
    /// Writes may come between two pages. Nothing is changed by that, and a collection that does not exist has no
    /// pages.
    ///
    /// - Parameters:
    ///   - timeout: how long each page may take.
    ///   - body: receives each page on the calling thread; false ends the reading.
    /// - Throws: `unavailable` where that cannot be told, as after the collection has been dropped.
    package func forEachPage(
        of name: [UInt8], _ format: CollectionRule.Format, within timeout: Duration,
        _ body: ([StoredRecord]) -> Bool
    ) throws(CRUDError) {
        guard let probe = try probe(name, format, within: timeout) else { return }
        var last: [UInt8]?
        while true {
            let page = RecordPage()
            let after = last
            try read(within: timeout) { reader throws(CRUDError) in
                var scan = RecordScan(.id)
                scan.after = after.map { (key: [], id: $0) }
                scan.limit = RecordPage.maximumRecords
                try reader.scan(scan, of: probe, into: page)
            }
            guard probe.isOpen else { throw failures.unavailable }
            let records = page.records
            guard !records.isEmpty, body(records), page.isFull else { return }
            last = records.last?.id
        }
    }
}

/// Copies records until there are enough for one page.
private final class RecordPage: RecordVisitor, Sendable {
    static let maximumRecords = 4096
    private static let maximumBytes = 1 << 20

    private let page = Mutex((records: [Backend.StoredRecord](), bytes: 0))

    var records: [Backend.StoredRecord] { page.withLock { $0.records } }

    /// Whether others may follow.
    var isFull: Bool { page.withLock { $0.records.count == Self.maximumRecords || $0.bytes >= Self.maximumBytes } }

    func visit(_ record: FoundRecord) -> Bool {
        page.withLock { page in
            page.records.append((Array(record.id), Array(record.item)))
            page.bytes += record.id.count + record.item.count
            return page.bytes < Self.maximumBytes
        }
    }
}
