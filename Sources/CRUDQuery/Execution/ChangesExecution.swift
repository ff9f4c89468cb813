import CRUDJSON
package import CRUDModel

/// `collection.changes`: finds the changes of one page, by sequence number. One thread at a time may use it.
///
/// A page ends where it is full, where its time is up, or at the highest sequence number that it is bound to. Its end
/// is a sequence number, so that the next page resumes behind what this one has passed, be it shown or not. A record
/// stands once in the storage's order, at its last change; only a removal and a record that was stored later under the
/// same id can meet in a page, and the removal gives way then.
package final class ChangesExecution: RecordVisitor {
    private let query: ChangesQuery
    private let decode: QueryTarget.Decoder?
    private let upper: UInt64
    private let shownRemovals: UInt64
    private let maximumBytes: Int
    private let limits: SearchLimits
    private let deadline: ContinuousClock.Instant
    private var evaluator: FilterEvaluator
    private var text: RecordText
    private let needsItems: Bool
    private var decoded: [UInt8] = []
    private var slice: Slice

    /// The page so far; what a later record has taken the place of is empty.
    private var entries: [[UInt8]] = []
    private var bytes = 0
    /// The positions of removals in it, by their ids.
    private var removals: [[UInt8]: Int] = [:]
    private var isFull = false
    private var isOverfull = false
    /// How many changes the scan in progress has found, and whether it was ended by the last of them.
    private var visited = 0
    private var hasStopped = false

    /// The change that the scan has stopped at, as it takes long to decide about it.
    private var long: RecordCopy?
    private var decision: LongRecordJob?
    private let memory: SearchMemoryShare
    /// How much there was not for the change that the scan has stopped at.
    private var missingMemory: Int?
    private let passes: Int
    /// Of a decision by the thread that scans: a change that takes more is long, however few bytes are stored.
    private let shortWork: Work
    /// What had been done when the decision about the present change began.
    private var workBefore = 0

    /// How many changes the page has.
    package private(set) var count = 0
    /// Where it ends: nothing up to this sequence number is left for another page.
    package private(set) var end: UInt64
    /// The sequence number of the last change that was passed, be it shown or not; where none was, the page's start.
    package private(set) var lastChange: UInt64
    /// The ids of records that cannot be decoded and were left out; at most 100.
    package private(set) var corrupt: [[UInt8]] = []

    private static let maximumCorrupt = 100
    /// How many records one scan asks for, so that a plugin that gathers them first does not gather all.
    private static let scanRecords = 2048

    /// - Parameters:
    ///   - start: only changes with higher sequence numbers.
    ///   - upper: only changes up to this sequence number.
    ///   - shownRemovals: removals are shown only with higher sequence numbers than this.
    ///   - maximumBytes: what the changes may take.
    ///   - timeout: the page ends early after this time.
    /// - Throws: `invalid_query` for a filter that cannot be evaluated.
    package init(
        _ query: ChangesQuery, in target: QueryTarget, after start: UInt64, through upper: UInt64,
        removalsAfter shownRemovals: UInt64, maximumBytes: Int, timeout: Duration,
        limits: SearchLimits = SearchLimits()
    ) throws(CRUDError) {
        self.query = query
        decode = target.decode
        self.upper = upper
        self.shownRemovals = shownRemovals
        self.maximumBytes = maximumBytes
        self.limits = limits
        deadline = limits.now() + timeout
        evaluator = try FilterEvaluator(query.filter ?? .constant(true))
        shortWork = if case .handedOver = limits.longRecords { Work(atMost: limits.longWork) } else { Work() }
        evaluator.work = shortWork
        text = RecordText(query.fields)
        needsItems = query.filter != nil || query.withItems
        passes = evaluator.passes + (query.withItems ? 1 : 0) + (decode == nil ? 0 : 16)
        slice = Slice(limits, limits.slice)
        memory = SearchMemoryShare(of: limits.memory)
        end = start
        lastChange = start
    }

    /// Whether nothing up to the page's bound is left for another page.
    package var reachesBound: Bool { end >= upper }

    /// The changes, with commas between.
    package var changes: [UInt8] {
        var joined: [UInt8] = []
        joined.reserveCapacity(bytes)
        for entry in entries where !entry.isEmpty {
            if !joined.isEmpty { joined.append(UInt8(ascii: ",")) }
            joined += entry
        }
        return joined
    }

    /// Searches for one slice, which takes some milliseconds.
    ///
    /// - Parameter isAbandoned: whether nobody waits for the page any more; it may be called on another thread.
    /// - Returns: whether the page is complete.
    /// - Throws: `limit_exceeded` where not even one record fits; what the source throws.
    package func advance(
        _ source: any RecordSource, isAbandoned: @escaping @Sendable () -> Bool
    ) throws(CRUDError) -> Bool {
        if let decision {
            if decision.isPending() { return false }
            self.decision = nil
            memory.giveBack()
            return try isEnd()
        }
        if memory.isWaiting { return false }
        guard end < upper else { return true }
        slice = Slice(limits, limits.slice)
        var scan = RecordScan(.sequence)
        scan.lowerSequence = end + 1
        scan.upperSequence = upper + 1
        scan.withItems = needsItems
        // One more shows that the page is not the last one.
        scan.limit = query.prefix.isEmpty ? min(Self.scanRecords, query.limit + 1 - count) : Self.scanRecords
        visited = 0
        hasStopped = false
        try source.scan(scan, into: self)
        if let long = long.take(), case .handedOver(let executor) = limits.longRecords {
            decide(long, isAbandoned, by: executor)
            return false
        }
        if try isEnd() { return true }
        if let missing = missingMemory.take() { memory.wait(for: missing) }
        guard !hasStopped, visited < scan.limit else { return false }
        end = upper
        return true
    }

    /// Whether the next slice would be in vain: another thread decides about a long record, or there is no memory for
    /// it.
    package var isWaiting: Bool { decision?.isPending() ?? memory.isWaiting }

    private func decide(
        _ record: RecordCopy, _ isAbandoned: @escaping @Sendable () -> Bool, by executor: any LongRecordExecutor
    ) {
        // While the decision is not done this object does nothing else, whoever calls it. It does not live for that
        // alone.
        nonisolated(unsafe) weak let made = self
        decision = LongRecordJob(by: executor) { yield in
            guard let execution = made else { return }
            execution.evaluator.work = Work {
                yield()
                return isAbandoned()
            }
            record.withRecord { _ = execution.take($0) }
            execution.evaluator.work = execution.shortWork
        }
    }

    /// Whether the page ends with the last change that was taken.
    private func isEnd() throws(CRUDError) -> Bool {
        if isOverfull {
            throw CRUDError(
                .limitExceeded, "not even one change fits into a reply",
                details: .init(limit: "frame_bytes", maximum: maximumBytes))
        }
        return isFull || limits.now() >= deadline
    }

    /// Takes a change of the scan.
    package func visit(_ record: FoundRecord) -> Bool {
        visited += 1
        if !isLong(record) {
            evaluator.work.renew()
            hasStopped = !take(record)
            guard evaluator.work.isStopped else { return !hasStopped }
        }
        keep(record)
        hasStopped = true
        return false
    }

    /// Keeps a long record if there is memory, in which it is decoded and written, too.
    private func keep(_ record: FoundRecord) {
        let bytes = 3 * record.item.count
        if memory.hold(bytes) { long = RecordCopy(record) } else { missingMemory = bytes }
    }

    private func isLong(_ record: FoundRecord) -> Bool {
        guard case .handedOver = limits.longRecords, needsItems, !record.isRemoved else { return false }
        return record.item.count * passes > limits.longWork && record.id.starts(with: query.prefix)
    }

    private func take(_ record: FoundRecord) -> Bool {
        workBefore = evaluator.work.bytes
        guard record.id.starts(with: query.prefix) else { return proceed(behind: record) }
        let isShown = !record.isRemoved || record.sequence > shownRemovals
        guard isShown else { return proceed(behind: record) }
        let entry: [UInt8]
        do {
            entry = try self.entry(for: record)
        } catch {
            if evaluator.work.isStopped { return false }
            name(corrupt: record.id)
            return proceed(behind: record)
        }
        if evaluator.work.isStopped { return false }
        let former = removals.isEmpty ? nil : removals[Array(record.id)]
        guard former != nil || count < query.limit else { return end(full: true) }
        guard bytes + entry.count + 1 <= maximumBytes else {
            // Behind names of corrupt records it may fit into the next page.
            isOverfull = entries.isEmpty && corrupt.isEmpty
            return end(full: true)
        }
        if let former {
            bytes -= entries[former].count + 1
            entries[former] = []
            count -= 1
            removals[Array(record.id)] = nil
        }
        if record.isRemoved { removals[Array(record.id)] = entries.count }
        entries.append(entry)
        bytes += entry.count + 1
        count += 1
        return proceed(behind: record)
    }

    private func end(full: Bool) -> Bool {
        isFull = full
        return false
    }

    /// - Returns: whether the slice continues.
    private func proceed(behind record: FoundRecord) -> Bool {
        end = record.sequence
        lastChange = record.sequence
        return !slice.isOverAfterRecord(of: max(record.item.count * passes, evaluator.work.bytes - workBefore))
    }

    private func entry(for record: FoundRecord) throws -> [UInt8] {
        // The buffers are valid during this call.
        let id = unsafe record.id.bindMemory(to: UInt8.self).span
        if record.isRemoved {
            var entry = Array(#"{"id":"#.utf8)
            entry.appendJSONString(id)
            entry += #","deleted":true}"#.utf8
            return entry
        }
        let stored = unsafe record.item.bindMemory(to: UInt8.self).span
        guard needsItems, let decode else { return try entry(for: record, stored, isValid: evaluator.needsItem) }
        decoded.removeAll(keepingCapacity: decoded.capacity <= 1 << 20)
        try decode(stored, &decoded, &evaluator.work)
        let text = decoded
        return try entry(for: record, text.span, isValid: true)
    }

    private func entry(for record: FoundRecord, _ item: Span<UInt8>, isValid: Bool) throws -> [UInt8] {
        guard try query.filter == nil || evaluator.matches(item) else {
            return text.write(withoutItemOf: record, suffix: #","matches":false"#)
        }
        guard query.withItems else { return text.write(withoutItemOf: record) }
        return try text.write(record, item: item, isValid: isValid, &evaluator.work)
    }

    private func name(corrupt id: UnsafeRawBufferPointer) {
        guard corrupt.count < Self.maximumCorrupt else { return }
        let size = id.count * 6 + 3
        guard bytes + size <= maximumBytes else { return }
        bytes += size
        corrupt.append(Array(id))
    }
}
