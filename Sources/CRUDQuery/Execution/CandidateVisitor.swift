import CRUDJSON
import CRUDModel

/// Decides about the records of a search, one after the other: which of them match, which of those come first, and when
/// a scan can stop.
///
/// Whatever has led to a record, its item alone decides. Nothing is allocated for a record that is not kept, unless a
/// string has escapes or the item is not stored as JSON text.
struct CandidateVisitor: ~Copyable {
    /// What is done with the records that match.
    enum Purpose {
        /// The first of them are kept as text for a page.
        case page
        /// The first of them are kept with their revisions.
        case revisions
        case count
    }

    /// Why a scan has stopped before its end.
    enum Stop {
        /// No further record can have a place on the page.
        case pageIsFull
        /// What follows does not belong to the scan.
        case scanEnd
        case sliceEnd
        /// Too many records tie in a reverse scan.
        case manyTies
        /// It takes long to decide about the last record.
        case longRecord
        /// There is no memory for what the search would hold.
        case noMemory
    }

    private let purpose: Purpose
    private let query: Query
    private let decode: QueryTarget.Decoder?
    private let maximumBytes: Int
    private let maximumTies: Int
    private let isSorted: Bool
    /// Whether every item is decoded, or looked at by filter or sort, which finds out whether it is valid JSON.
    private let validates: Bool
    /// Whether items are looked at or shown.
    private let needsItems: Bool
    private var evaluator: FilterEvaluator
    private var values: SortValueReader
    private var text: RecordText
    /// The text of an item that is stored otherwise.
    private var decoded: [UInt8] = []

    /// Only records behind it are wanted; nil: all.
    private var position: SortPosition?
    /// The records to return.
    var first: FirstRecords
    /// How many records match, where they are counted.
    private(set) var count = 0
    private(set) var scanned = 0
    /// The ids of records that cannot be decoded, each once.
    private(set) var corrupt: [[UInt8]] = []
    /// Those that were found unkeyed: a later slice may find them again.
    private var unkeyed: Set<[UInt8]> = []

    private var planned = PlannedScan(RecordScan(.id), .none)
    private var slice: Slice
    private var visited = 0
    /// How many records the scan has at the most; 0: any number.
    private var limit = 0
    /// In a reverse scan: the value that the last records tie in, and how many do.
    private var group: (value: SortValue, count: Int)?
    /// Why the scan has stopped; nil: it has not.
    private(set) var stop: Stop?
    /// The records that it takes long to decide about.
    private var long: LongVisits
    private let memory: SearchMemoryShare
    /// The last record of a scan that has stopped.
    private(set) var last: (id: [UInt8], value: SortValue?, position: UInt64) = ([], nil, 0)

    /// How often an item is looked at, about.
    private let passes: Int
    /// Of a decision by the thread that scans: a record that takes more is long, however few bytes are stored.
    private let shortWork: Work
    /// What had been done when the decision about the present record began.
    private var workBefore = 0

    /// To decode an item takes as long as to look at it so many times, or less.
    private static let decodingPasses = 16
    /// The most ids that are named in ``corrupt``.
    private static let maximumCorrupt = 100

    /// - Parameters:
    ///   - evaluator: of the query's filter, or of one that is always true.
    ///   - maximumBytes: what the texts of a page and a cursor may take together.
    init(
        _ query: Query, _ purpose: Purpose, _ decode: QueryTarget.Decoder?, _ evaluator: consuming FilterEvaluator,
        maximumBytes: Int, _ limits: SearchLimits, _ memory: SearchMemoryShare
    ) {
        self.purpose = purpose
        self.memory = memory
        self.query = query
        self.decode = decode
        self.maximumBytes = maximumBytes
        maximumTies = limits.maximumTies
        slice = Slice(limits, limits.slice)
        isSorted = !query.sort.keys.isEmpty
        var passes = evaluator.passes + (isSorted ? 2 : 0) + (purpose == .page ? 1 : 0)
        if decode != nil { passes += Self.decodingPasses }
        self.passes = passes
        long = LongVisits(limits)
        validates = isSorted || evaluator.needsItem || decode != nil
        needsItems = isSorted || query.filter != nil || purpose == .page
        // Where items are not looked at, no record is long.
        switch limits.longRecords {
        case .none, .handedOver: shortWork = needsItems ? Work(atMost: limits.longWork) : Work()
        case .inPlace: shortWork = Work()
        }
        self.evaluator = evaluator
        self.evaluator.work = shortWork
        values = SortValueReader(query.sort)
        text = RecordText(query.fields)
        position = query.position
        first = FirstRecords(query.sort, limit: query.limit, maximumBytes: maximumBytes)
    }

    /// Forgets what has been found.
    mutating func restart(behind position: SortPosition?) {
        self.position = position
        first = FirstRecords(query.sort, limit: query.limit, maximumBytes: maximumBytes)
        count = 0
        group = nil
        unkeyed.removeAll()
        long.removeAll()
        for id in corrupt { first.reserve(bytes: Self.size(ofCorrupt: id)) }
    }

    // MARK: Scans

    mutating func begin(_ slice: Slice) { self.slice = slice }

    /// Begins a scan.
    ///
    /// - Parameter isUnordered: whether the scan continues behind a long record: it can be decided about later.
    /// - Returns: what to ask the source for.
    mutating func begin(_ planned: PlannedScan, isUnordered: Bool = false) -> RecordScan {
        long.areGathered = isUnordered
        var scan = planned.scan
        scan.withItems = needsItems
        // One more record shows that the page is not the last one.
        if planned.ordering == .full, query.filter == nil { scan.limit = max(1, query.limit + 1 - first.count) }
        self.planned = planned
        limit = scan.limit
        visited = 0
        stop = nil
        return scan
    }

    /// Whether the slice's time is up, which is asked between scans.
    mutating func isSliceOver() -> Bool { slice.isOver() }

    private var isUnkeyedScan: Bool { if case .unkeyed = planned.scan.order { true } else { false } }

    /// Whether the last record's value says where the scan is.
    private var needsValue: Bool { planned.ordering != .none && isSorted }

    /// - Returns: whether further records are wanted.
    mutating func visit(_ record: FoundRecord) -> Bool {
        scanned += 1
        visited += 1
        if let endID = planned.endID, !record.id.lexicographicallyPrecedes(endID) { return end(.scanEnd) }
        guard needsItems else { return examine(record) }
        if isUnkeyedScan, long.areDecided(record) { return pass(record) }
        guard long.areLong(record.item.count * passes) else { return visit(short: record) }
        return visit(long: record)
    }

    /// Decides about a record whose stored form is short; it may take long all the same.
    private mutating func visit(short record: FoundRecord) -> Bool {
        guard evaluator.work.isLimited else { return examine(record) }
        evaluator.work.renew()
        let before = group
        let isContinued = examine(record)
        guard evaluator.work.isStopped else { return isContinued }
        (group, stop) = (before, nil)
        return visit(long: record)
    }

    private mutating func visit(long record: FoundRecord) -> Bool {
        let isContinued = long.keep(record, in: planned)
        guard holdMemory() else { return end(.noMemory) }
        guard isContinued else { return end(.longRecord) }
        return pass(record)
    }

    /// Passes over a record in a scan whose order does not matter.
    private mutating func pass(_ record: FoundRecord) -> Bool {
        if slice.isOverAfterRecord(of: record.item.count) || visited == limit { stop = .sliceEnd }
        guard stop != nil else { return true }
        last = (Array(record.id), nil, record.position)
        return false
    }

    /// Decides about a record, and whether the scan is to be continued behind it.
    private mutating func examine(_ record: FoundRecord) -> Bool {
        // The buffers are valid during this call.
        let id = unsafe record.id.bindMemory(to: UInt8.self).span
        let stored = unsafe record.item.bindMemory(to: UInt8.self).span
        workBefore = evaluator.work.bytes
        do {
            guard needsItems, let decode else {
                try decide(record, id, stored)
                return try proceed(record, stored)
            }
            var decoded: [UInt8] = []
            swap(&decoded, &self.decoded)
            defer { swap(&decoded, &self.decoded) }
            decoded.removeAll(keepingCapacity: decoded.capacity <= 1 << 20)
            try decode(stored, &decoded, &evaluator.work)
            try decide(record, id, decoded.span)
            return try proceed(record, decoded.span)
        } catch {
            if evaluator.work.isStopped { return end(.sliceEnd) }
            name(corrupt: record.id)
            // Without a value it is not known where the scan is.
            return needsValue || (try? proceed(record, stored)) ?? true
        }
    }

    private mutating func end(_ stop: Stop) -> Bool {
        self.stop = stop
        return false
    }

    /// Stops the scan where that is due.
    private mutating func proceed(_ record: FoundRecord, _ item: Span<UInt8>) throws(JSONSyntaxError) -> Bool {
        let work = max(record.item.count * passes, evaluator.work.bytes - workBefore)
        if stop == nil, slice.isOverAfterRecord(of: work) || visited == limit { stop = .sliceEnd }
        guard stop != nil else { return true }
        last = (Array(record.id), nil, record.position)
        guard needsValue else { return false }
        if evaluator.work.isLimited {
            // The record has been decided about, and is not long.
            try values.find(in: item)
        } else {
            try values.find(in: item, &evaluator.work)
        }
        last.value = values.value(0, in: item)
        return false
    }

    private mutating func name(corrupt id: UnsafeRawBufferPointer) {
        guard corrupt.count < Self.maximumCorrupt, !corrupt.contains(where: { $0.elementsEqual(id) }) else { return }
        let id = Array(id)
        // Their names must not fill the page.
        let size = corrupt.reduce(Self.size(ofCorrupt: id)) { $0 + Self.size(ofCorrupt: $1) }
        guard size <= maximumBytes / 4 else { return }
        corrupt.append(id)
        first.reserve(bytes: Self.size(ofCorrupt: id))
    }

    /// How long the name of a corrupt record is at the most, escapes, quotes and comma included.
    private static func size(ofCorrupt id: [UInt8]) -> Int { id.count * 6 + 3 }

    // MARK: Memory

    /// Takes memory for what is held, or gives back what is not held any more.
    ///
    /// - Returns: whether there is enough.
    private func holdMemory() -> Bool {
        memory.hold(long.memory + (purpose == .page ? Self.memory(ofPage: first.contentBytes) : 0))
    }

    /// How much memory the search may need, about.
    var maximumMemory: Int {
        long.maximumMemory + (purpose == .page ? Self.memory(ofPage: maximumBytes) : 0)
    }

    /// The records of a page, and their texts one behind the other. Small pages do not count.
    private static func memory(ofPage bytes: Int) -> Int {
        bytes <= 256 << 10 ? 0 : 2 * (bytes / pageStep + 1) * pageStep
    }

    private static let pageStep = 1 << 20

    // MARK: Long records

    /// Has whoever waits asked during decisions, too, of which there may be long ones.
    mutating func beginWork(shouldStop: @escaping () -> Bool) { evaluator.work = Work(shouldStop: shouldStop) }

    /// Whether there are long records to decide about.
    var hasLongRecords: Bool { !long.visits.isEmpty }

    /// Whether the scan has stopped at a record whose sort value is not known, so that it cannot be resumed behind it.
    var hasLostPlace: Bool { stop == .sliceEnd && last.id.isEmpty }

    /// Decides about the long records of a slice, the one at which the scan has stopped last; the scan ends behind it.
    ///
    /// - Parameter shouldStop: asked now and then whether nobody needs the decision any more.
    mutating func decideLongRecords(shouldStop: @escaping () -> Bool) {
        let (visits, scan, hasStopped) = (long.takeAll(), planned, stop == .longRecord)
        if hasStopped { last = ([], nil, 0) }
        evaluator.work = Work(shouldStop: shouldStop)
        defer { evaluator.work = shortWork }
        for (index, visit) in visits.enumerated() where !evaluator.work.isStopped {
            planned = visit.scan
            let isLast = hasStopped && index == visits.count - 1
            let before = stop
            // Where the scan has not stopped at this record, no more than the decision matters.
            stop = .sliceEnd
            visit.record.withRecord { _ = examine($0) }
            if stop == .noMemory { return }
            if !isLast { stop = before }
        }
        planned = scan
        long.areDone()
        _ = holdMemory()
    }

    // MARK: Decisions

    private mutating func decide(
        _ record: FoundRecord, _ id: Span<UInt8>, _ item: Span<UInt8>
    ) throws(JSONSyntaxError) {
        if planned.ordering != .none, let threshold = first.threshold {
            try values.find(in: item, &evaluator.work)
            let isBehind =
                planned.ordering == .full
                ? values.compare(id: id, in: item, with: threshold, &evaluator.work) >= 0
                : values.compare(0, in: item, with: threshold.values[0], &evaluator.work) > 0
            try checkWork()
            if isBehind {
                first.leaveOut()
                stop = .pageIsFull
                return
            }
        }
        if planned.scan.isReversed, query.sort.keys.count == 1 { try count(group: item) }
        guard query.prefix.isEmpty || record.id.starts(with: query.prefix) else { return }
        let matches = try evaluator.matches(item)
        try checkWork()
        guard matches else { return }
        if query.filter != nil, !validates, purpose != .page { try validate(item) }
        if purpose == .count { count += 1 } else { try keep(record, id, item) }
    }

    /// Even where a filter depends on no member, it selects none whose item is not valid JSON.
    private mutating func validate(_ item: Span<UInt8>) throws(JSONSyntaxError) {
        var scanner = JSONScanner()
        try scanner.document(item, &evaluator.work)
    }

    /// Where the work has been stopped, nothing may be decided by it.
    private func checkWork() throws(JSONSyntaxError) {
        if evaluator.work.isStopped { throw JSONSyntaxError(reason: .stopped, offset: 0) }
    }

    private mutating func count(group item: Span<UInt8>) throws(JSONSyntaxError) {
        try values.find(in: item, &evaluator.work)
        if let group, values.compare(0, in: item, with: group.value, &evaluator.work) == 0 {
            self.group?.count += 1
            if group.count == maximumTies { stop = .manyTies }
        } else {
            group = (values.value(0, in: item, &evaluator.work), 1)
        }
    }

    /// Keeps a record that matches, if it is one of the first behind the position.
    private mutating func keep(
        _ record: FoundRecord, _ id: Span<UInt8>, _ item: Span<UInt8>
    ) throws(JSONSyntaxError) {
        try values.find(in: item, &evaluator.work)
        if let position {
            let isBefore = values.compare(id: id, in: item, with: position, &evaluator.work) <= 0
            try checkWork()
            if isBefore { return }
        }
        if let threshold = first.threshold {
            let isBehind = values.compare(id: id, in: item, with: threshold, &evaluator.work) >= 0
            try checkWork()
            if isBehind { return first.leaveOut() }
        }
        let position = values.position(id: id, in: item, &evaluator.work)
        if unkeyed.contains(position.id) { return }
        let content =
            purpose == .page
            ? try text.write(record, item: item, isValid: validates, &evaluator.work) : Array(record.revision)
        try checkWork()
        if isUnkeyedScan { unkeyed.insert(position.id) }
        first.insert(FirstRecords.Entry(position: position, content: content))
        guard holdMemory() else {
            stop = .noMemory
            return
        }
        // With a filter it is not worth while to look for one more.
        guard planned.ordering == .full, query.filter != nil || first.hasLeftOut, let threshold = first.threshold,
            values.compare(id: id, in: item, with: threshold) >= 0
        else { return }
        first.leaveOut()
        stop = .pageIsFull
    }
}
