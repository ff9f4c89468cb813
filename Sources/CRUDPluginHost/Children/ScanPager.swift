import CRUDPluginABI

/// A scan in several calls: the caller may stop at any record, and a child that does not heed an interrupt should not
/// have found many more by then.
///
/// What the child finds is checked: ids must be ids, in the range and in the order that was asked for. A sequence
/// number that comes twice is no fault of the child's: somebody has copied a row with its number. The copy is left out.
struct ScanPager {
    private let request: crudd_scan
    private var range: crudd_range
    private let collection: Int
    /// The id of the last record, where the order is by id.
    private var lastID: [UInt8]
    /// The number of the last record, where the order is by sequence number.
    private var lastSequence: UInt64 = 0
    private var count = 0
    /// The number of records that the page may end with; nil: it has no end.
    private var pageEnd: Int?
    /// Whether the caller wants further records.
    private(set) var isWanted = true

    /// How many records one call asks for at most.
    private static let pageRecords = 1000

    /// - Parameter collection: the number by which the child knows it.
    init(_ request: crudd_scan, collection: Int) {
        self.request = request
        self.collection = collection
        range = crudd_range.read(request.range)
        lastID = Array(request.after_id.buffer)
    }

    private var isReversed: Bool { Int(request.flags) & CRUDD_SCAN_REVERSE != 0 }

    /// Whether ids decide the order.
    private var isByID: Bool {
        switch Int(range.order) {
        case CRUDD_BY_ID: true
        case CRUDD_BY_KEY: Int(range.flags) & CRUDD_RANGE_UNKEYED != 0
        default: Int(range.flags) & CRUDD_RANGE_UNSEQUENCED != 0
        }
    }

    /// Whether sequence numbers do.
    private var isBySequence: Bool { Int(range.order) == CRUDD_BY_SEQUENCE && !isByID }

    /// Whether another call has to be made: the last page was full, and the caller wants more.
    var hasNext: Bool {
        isWanted && pageEnd != nil && count == pageEnd && (request.limit == 0 || count < request.limit)
    }

    /// Writes the parameters of the next call.
    mutating func writePage(to frame: inout FrameWriter, now: Int64) {
        let left = request.limit == 0 ? Self.pageRecords : min(request.limit - count, Self.pageRecords)
        // By key only whoever knows the keys can tell where a page ends.
        let isPaged = isByID || isBySequence
        pageEnd = isPaged ? count + left : request.limit == 0 ? nil : request.limit
        frame.raw(#""collection":"#, collection)
        frame.range(range)
        if Int(range.order) == CRUDD_BY_KEY, !isByID {
            frame.raw(#","afterKey":"#, bytes: request.after_key)
        }
        if !isBySequence {
            frame.raw(#","afterId":"#)
            lastID.withUnsafeBytes { frame.bytes($0) }
        }
        frame.raw(#","reverse":"#, isReversed)
        frame.raw(#","limit":"#, isPaged ? left : request.limit)
        frame.raw(#","items":"#, Int(request.flags) & CRUDD_SCAN_WITHOUT_ITEMS == 0)
        frame.raw(#","now":"#, now)
    }

    /// Takes a record that the child has found.
    mutating func take(_ record: inout crudd_record) throws(ProtocolViolation) {
        let id = record.id.buffer
        guard RecordCodec.isID(id) else { throw ProtocolViolation("a record without an id, or with an invalid one") }
        guard isBySequence || !record.isRemoved else { throw ProtocolViolation("a record that was removed") }
        guard count != pageEnd else { throw ProtocolViolation("more records than were asked for") }
        if isByID {
            try checkOrder(of: id)
            lastID.replaceSubrange(0..., with: id)
        } else if isBySequence {
            guard record.sequence != lastSequence else {
                // It counts towards what this call has asked for, and not towards the caller's limit.
                pageEnd = pageEnd.map { $0 - 1 }
                return
            }
            try advance(past: record.sequence)
            lastSequence = record.sequence
        }
        if isWanted { isWanted = request.emit(request.context, count, &record) == 0 }
        count += 1
    }

    private func checkOrder(of id: UnsafeRawBufferPointer) throws(ProtocolViolation) {
        let (lower, upper) = (range.lower.buffer, range.upper.buffer)
        let isBehind =
            lastID.isEmpty
            || (isReversed ? id.lexicographicallyPrecedes(lastID) : lastID.lexicographicallyPrecedes(id))
        guard isBehind, !id.lexicographicallyPrecedes(lower), upper.isEmpty || id.lexicographicallyPrecedes(upper)
        else { throw ProtocolViolation("an id that was not asked for, or out of order") }
    }

    /// Has what is left of the range begin behind a sequence number.
    private mutating func advance(past sequence: UInt64) throws(ProtocolViolation) {
        guard sequence > 0, sequence >= range.lower_sequence, sequence < .max,
            range.upper_sequence == 0 || sequence < range.upper_sequence
        else { throw ProtocolViolation("a sequence number that was not asked for, or out of order") }
        if isReversed { range.upper_sequence = sequence } else { range.lower_sequence = sequence + 1 }
    }
}
