/// The long records that the scans of a slice have met, until they are decided about.
struct LongVisits {
    /// Whether the scan in progress continues behind a long record.
    var areGathered = false
    /// The records, and the scans that have found them.
    private(set) var visits: [(scan: PlannedScan, record: RecordCopy)] = []
    private var bytes = 0
    /// The longest that there has been.
    private var longest = 0
    /// The revisions of those without a key, by id: each slice finds them again.
    private var unkeyed: [[UInt8]: [UInt8]] = [:]
    private let maximumBytes: Int
    private let leastWork: Int
    private let areKept: Bool

    init(_ limits: SearchLimits) {
        maximumBytes = limits.maximumLongBytes
        switch limits.longRecords {
        case .inPlace: (leastWork, areKept) = (.max, false)
        case .none: (leastWork, areKept) = (limits.longWork, false)
        case .handedOver: (leastWork, areKept) = (limits.longWork, true)
        }
    }

    /// Whether records that take so much work are long.
    func areLong(_ work: Int) -> Bool { work > leastWork }

    /// Whether a record without a key has been kept in an earlier slice, as it is now.
    func areDecided(_ record: FoundRecord) -> Bool {
        !unkeyed.isEmpty && unkeyed[Array(record.id)].map(record.revision.elementsEqual) == true
    }

    /// Keeps a record.
    ///
    /// - Returns: whether the scan continues behind it.
    mutating func keep(_ record: FoundRecord, in scan: PlannedScan) -> Bool {
        guard areKept else { return false }
        let copy = RecordCopy(record)
        visits.append((scan, copy))
        bytes += copy.byteCount
        longest = max(longest, copy.byteCount)
        if case .unkeyed = scan.scan.order { unkeyed[Array(record.id)] = Array(record.revision) }
        return areGathered && bytes <= maximumBytes
    }

    /// Takes those that are to be decided about; they count until ``areDone()``.
    mutating func takeAll() -> [(scan: PlannedScan, record: RecordCopy)] {
        defer { visits = [] }
        return visits
    }

    /// Notes that those that were taken are not kept any more.
    mutating func areDone() { bytes = 0 }

    mutating func removeAll() {
        _ = takeAll()
        areDone()
        unkeyed.removeAll()
    }

    // MARK: Memory

    /// How much memory they take. One at a time is decoded and written.
    var memory: Int { bytes == 0 ? 0 : bytes + 2 * longest }

    /// How much memory they may take, if there are no longer ones.
    var maximumMemory: Int { longest == 0 ? 0 : maximumBytes + 3 * longest }
}
