import CRUDModel

/// A search for the records of a query, executed slice by slice, each on a snapshot of its own.
///
/// The planner chooses an access path; the records that have no key in its index come first, then those that its scans
/// find, and each is decided about by its item (``CandidateVisitor``). A scan that has the order of the query stops
/// when nothing can come before what is kept.
///
/// A record whose filter outcome and sort values stay the same must be found once, whatever is written between slices.
/// Where a path spans slices, such a record keeps its place on it, unless it loses its key or is given one. Hence every
/// slice begins with the records without a key, those that were found so before are passed over, and one that is found
/// twice is kept once. A path on which other records move is left for a scan by id if one slice does not suffice.
///
/// A scan stops at a record about which it takes long to decide, or passes over it where the order does not matter. The
/// slice ends with a decision on another thread; the search waits for it.
final class RecordSearch: RecordVisitor {
    private let purpose: CandidateVisitor.Purpose
    private(set) var query: Query
    private var indexes: [QueryIndex]
    private let target: QueryTarget
    private let limits: SearchLimits
    /// A page that is found in its order ends early after this time; nil: never.
    private let timeout: Duration?
    private var end: ContinuousClock.Instant?
    private(set) var path: AccessPath?
    /// The scans that have not come to their ends, the next one last.
    private var scans: [PlannedScan] = []
    /// One thread at a time uses a search, and no access to it is in progress when a record is visited.
    @exclusivity(unchecked) private var visitor: CandidateVisitor
    private let memory: SearchMemoryShare
    /// Where a page has ended early.
    private var earlyEnd: SortPosition?
    /// About the long records of the last slice, and what comes then.
    private var decision: LongRecordJob?
    private var afterDecision = Continuation.end(isComplete: false)

    /// - Throws: `invalid_query` for a filter that cannot be evaluated.
    init(
        _ query: Query, _ purpose: CandidateVisitor.Purpose, in target: QueryTarget, maximumBytes: Int = .max,
        timeout: Duration? = nil, limits: SearchLimits = SearchLimits()
    ) throws(CRUDError) {
        let evaluator = try FilterEvaluator(query.filter ?? .constant(true))
        self.query = query
        self.purpose = purpose
        self.target = target
        self.timeout = timeout
        self.limits = limits
        indexes = target.indexes
        memory = SearchMemoryShare(of: limits.memory)
        visitor = CandidateVisitor(
            query, purpose, target.decode, evaluator, maximumBytes: maximumBytes, limits, memory)
    }

    // MARK: What has been found

    /// The first records that match behind the query's position, in their order.
    var records: [FirstRecords.Entry] { visitor.first.sorted }
    /// Whether the records take more than the page has, which only a single one can.
    var isOverfull: Bool { visitor.first.isOverfull }
    /// How many records match, where they are counted.
    var count: Int { visitor.count }
    var scanned: Int { visitor.scanned }
    var corrupt: [[UInt8]] { visitor.corrupt }

    /// Where the search ends before the last record; nil: there are no further ones.
    var continuation: SortPosition? {
        earlyEnd ?? (visitor.first.hasLeftOut ? visitor.first.last?.position : nil)
    }

    /// Begins again, behind another position.
    func restart(behind position: SortPosition?) {
        query.position = position
        indexes = target.indexes
        restart()
    }

    private func restart(without index: QueryIndex) {
        indexes.removeAll { $0 == index }
        restart()
    }

    private func restart() {
        path = nil
        visitor.restart(behind: query.position)
    }

    // MARK: Slices

    /// Searches for one slice.
    ///
    /// - Parameter isAbandoned: may be called on another thread.
    /// - Returns: whether the search is complete.
    func advance(
        _ source: any RecordSource, isAbandoned: @escaping @Sendable () -> Bool
    ) throws(CRUDError) -> Bool {
        if let decision {
            if decision.isPending() { return false }
            self.decision = nil
            return !isAbandoned() && resume()
        }
        if memory.isWaiting { return false }
        if end == nil, let timeout { end = limits.now() + timeout }
        let path = if let path { path } else { try plan(source) }
        let slice = Slice(limits, path.needsOneSnapshot ? limits.snapshot : limits.slice)
        if let index = path.index, try !scanUnkeyed(index, source) {
            if visitor.stop == .noMemory { return waitForMemory() }
            restart(without: index)
            return false
        }
        visitor.begin(slice)
        if case .inPlace = limits.longRecords { visitor.beginWork(shouldStop: isAbandoned) }
        while !isAbandoned() {
            guard let planned = scans.popLast() else { return decide(isAbandoned, then: .end(isComplete: true)) }
            try source.scan(visitor.begin(planned, isUnordered: path.needsOneSnapshot), into: self)
            if visitor.stop == .longRecord, !path.needsOneSnapshot {
                return decide(isAbandoned, then: .rest(of: planned, path))
            }
            if let isComplete = end(of: planned, path) {
                return decide(isAbandoned, then: .end(isComplete: isComplete))
            }
        }
        return false
    }

    /// Whether the slice ends where a scan has ended, and if so, whether the search is complete; nil: there is time for
    /// the next scan.
    private func end(of planned: PlannedScan, _ path: AccessPath) -> Bool? {
        switch visitor.stop {
        case .pageIsFull: return true
        case .manyTies: split(planned, path)
        case .sliceEnd:
            scans.append(resumed(planned, path))
            return endEarly(planned) || endSlice(path)
        case .longRecord: return endSlice(path)
        case .noMemory: return waitForMemory()
        case nil, .scanEnd: if !scans.isEmpty, visitor.isSliceOver() { return endSlice(path) }
        }
        return nil
    }

    // MARK: Long records

    /// What comes after a decision.
    private enum Continuation {
        /// The slice has come to its end.
        case end(isComplete: Bool)
        /// A scan has stopped at the last one of the records.
        case rest(of: PlannedScan, AccessPath)
    }

    /// Whether the search waits for a decision or for memory, so that the next slice would be in vain.
    var isWaiting: Bool { decision?.isPending() ?? memory.isWaiting }

    /// Has the long records of the slice decided about, if there are any.
    ///
    /// - Returns: whether the search is complete.
    private func decide(
        _ isAbandoned: @escaping @Sendable () -> Bool, then continuation: Continuation
    ) -> Bool {
        guard visitor.hasLongRecords, case .handedOver(let executor) = limits.longRecords else {
            if case .end(let isComplete) = continuation { return isComplete }
            return false
        }
        afterDecision = continuation
        // While the decision is not done this object does nothing else, whoever calls it. It does not live for that
        // alone.
        nonisolated(unsafe) weak let made = self
        decision = LongRecordJob(by: executor) { yield in
            guard let search = made else { return }
            search.visitor.decideLongRecords {
                yield()
                return isAbandoned()
            }
        }
        return false
    }

    /// Continues behind a decision.
    private func resume() -> Bool {
        if visitor.stop == .noMemory { return waitForMemory() }
        switch afterDecision {
        case .end(let isComplete):
            if let earlyEnd { visitor.first.removeAll(behind: earlyEnd) }
            return isComplete
        case .rest(let planned, let path):
            if visitor.hasLostPlace, let index = path.index {
                restart(without: index)
                return false
            }
            return end(of: planned, path) ?? false
        }
    }

    /// Begins again when there is memory for all that the search may need.
    private func waitForMemory() -> Bool {
        memory.wait(for: visitor.maximumMemory)
        restart()
        return false
    }

    func visit(_ record: FoundRecord) -> Bool { visitor.visit(record) }

    private func plan(_ source: any RecordSource) throws(CRUDError) -> AccessPath {
        let planner = QueryPlanner(query, indexes, limits)
        let path = try purpose == .count ? planner.pathToAll(in: source) : planner.path(in: source)
        scans = path.scans(for: query).reversed()
        self.path = path
        return path
    }

    /// Scans the records that have no key in an index; false where they are too many.
    private func scanUnkeyed(_ index: QueryIndex, _ source: any RecordSource) throws(CRUDError) -> Bool {
        var scan = RecordScan(.unkeyed(index: index.number))
        scan.limit = limits.maximumUnkeyed + 1
        visitor.begin(Slice(limits, limits.snapshot))
        try source.scan(visitor.begin(PlannedScan(scan, .none), isUnordered: true), into: self)
        return visitor.stop == nil
    }

    /// Ends a slice; the search is not complete.
    private func endSlice(_ path: AccessPath) -> Bool {
        if path.needsOneSnapshot {
            indexes = []
            restart()
        }
        return false
    }

    /// The rest of a scan that has stopped with its slice.
    private func resumed(_ planned: PlannedScan, _ path: AccessPath) -> PlannedScan {
        var rest = planned
        let (id, value, position) = visitor.last
        let key = path.index == nil ? [] : value.map { IndexKey.bound($0).key } ?? planned.scan.lower
        rest.scan.after = (key, id)
        rest.scan.afterPosition = position
        return rest
    }

    /// Replaces the rest of a reverse scan, in which many records tie: those that have not been scanned come in their
    /// order, then those with lesser keys.
    private func split(_ planned: PlannedScan, _ path: AccessPath) {
        guard let index = path.index, let value = visitor.last.value else { return }
        let key = IndexKey.bound(value).key
        var rest = planned
        rest.scan.upper = key
        rest.scan.after = nil
        if key != planned.scan.lower { scans.append(rest) }
        scans.append(PlannedScan(AccessPath.point(index, key, after: nil), .full, endID: visitor.last.id))
    }

    // MARK: Ending early

    /// Ends the page where the scan has stopped, if it is time to.
    private func endEarly(_ planned: PlannedScan) -> Bool {
        guard let end, limits.now() >= end, let position = completePosition(planned),
            query.position.map({ query.sort.compare(position, $0) > 0 }) ?? true
        else { return false }
        visitor.first.removeAll(behind: position)
        earlyEnd = position
        return true
    }

    /// A position up to which all records have been found; nil where the scan has another order.
    private func completePosition(_ planned: PlannedScan) -> SortPosition? {
        let (id, value, _) = visitor.last
        switch planned.ordering {
        case .none: return nil
        case .full: return SortPosition(values: value.map { [$0] } ?? [], id: id)
        case .grouped:
            // In front of all records that tie with the last one.
            guard let value else { return nil }
            let rest = query.sort.keys.dropFirst().map { $0.isDescending ? SortValue.object : .null }
            return SortPosition(values: [value] + rest, id: [])
        }
    }
}
