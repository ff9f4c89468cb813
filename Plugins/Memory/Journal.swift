import CRUDPluginKit
import CRUDRecordLog

/// The log of a backend: what is committed to it is there after a crash.
///
/// The log is a queue (see ``RecordLog``). Everything that is still needed is in a list, in the order of the log. A
/// commit takes some of its first ones, which the oldest segment has, and appends them to the log and to the list
/// again: no segment is ever read but when the log is opened.
final class Journal {
    private let log: RecordLog
    private var live: LiveRecords
    /// What is written where a commit rewrites something.
    private let frame = LogFrame()
    /// How much could not be gained when there was no room and everything had been rewritten.
    private var lastGarbageBytes = 0
    /// The last segment that is to be rewritten to make room, where that has begun.
    private var lastRewritten: UInt64?

    /// How many bytes are rewritten at once where no request waits.
    private static let stepBytes = 256 << 10
    /// How long rewriting may take where a write waits for room; the next one continues it.
    private static let roomTime = Duration.seconds(1)
    /// How long rewriting may take when there is nothing else to do.
    private static let idleTime = Duration.milliseconds(20)

    init(_ log: RecordLog, live: LiveRecords) {
        self.log = log
        self.live = live
        log.liveBytes = live.bytes
    }

    var identity: UInt64 { log.identity }
    var lastSequence: UInt64 { log.lastSequence }

    // MARK: Committing

    /// Returns once the disk has what a batch changes.
    ///
    /// - Throws: ``StorageFailure`` if it changes nothing (`outcomeUnknown`: if it may).
    func commit(_ changes: Changes) throws(StorageFailure) {
        // What is not needed any more without an entry of the log is not made again from it either.
        if changes.isEmpty { return apply(changes.effects) }
        let bytes = changes.frame.payloadBytes
        let budget = log.rewriteBudget(for: bytes)
        do throws(StorageFailure) {
            try attempt(changes, rewriting: budget)
        } catch let error where log.hadNoRoom && (budget > 0 || changes.grows && error.status == .noSpace) {
            // For the changes alone there may be room.
            if changes.grows, error.status == .noSpace, try !makeRoom(for: bytes, within: Self.roomTime) {
                log.reportLackOfRoom()
                throw error
            }
            try attempt(changes, rewriting: 0)
        }
        // A deletion has used what is reserved: it is made up for if it has made room.
        if !changes.grows, log.isShortOfRoom, log.garbageBytes > lastGarbageBytes + log.segmentBytes / 4 {
            _ = try? makeRoom(for: 0, within: Self.idleTime)
        }
    }

    private func attempt(_ changes: Changes, rewriting budget: Int) throws(StorageFailure) {
        try write(changes, rewriting: budget, changes.grows ? .grows : .frees)
        apply(changes.effects)
    }

    private func apply(_ effects: [Changes.Effect]) {
        for effect in effects {
            switch effect {
            case .added(let record): live.append(record, segment: log.currentSegment)
            case .removed(let record): live.remove(record)
            }
        }
        log.liveBytes = live.bytes
    }

    /// Writes changes, and before them what is needed of the oldest segments.
    private func write(
        _ changes: Changes?, rewriting budget: Int, _ purpose: RecordLog.Purpose
    ) throws(StorageFailure) {
        var rewritten: [Record] = []
        var next = live.first
        frame.reset()
        let current = UInt32(truncatingIfNeeded: log.currentSegment)
        // What is left of a segment is filled up, as far as records fit.
        let left = log.leftBytes - (changes?.frame.payloadBytes ?? 0)
        let limit = left >= next?.loggedBytes ?? 0 ? min(budget, left) : budget
        while let record = next, record.segment != current,
            frame.payloadBytes + record.loggedBytes <= limit || budget > 0 && frame.payloadBytes == 0
        {
            frame.append(record)
            rewritten.append(record)
            next = record.next
        }
        if let changes, !rewritten.isEmpty { frame.append(changes.frame.payload) }
        let written = rewritten.isEmpty ? changes?.frame ?? frame : frame
        let segment = try log.commit(
            written, purpose, lastSequence: changes?.lastSequence ?? 0, oldestSegment: next.map { UInt64($0.segment) })
        for record in rewritten {
            live.remove(record)
            live.append(record, segment: segment)
        }
    }

    /// Rewrites some of what is needed, or has segments be used again of which nothing is.
    ///
    /// - Returns: false if there is nothing to do.
    private func rewrite(before segment: UInt64) throws(StorageFailure) -> Bool {
        let oldest = live.first.map { UInt64($0.segment) } ?? log.currentSegment
        guard oldest < segment || oldest > log.oldestSegment else { return false }
        try write(nil, rewriting: Self.stepBytes, .frees)
        return true
    }

    // MARK: Room

    /// Rewrites until there is room for a commit of so many bytes, or everything has been rewritten once, which may
    /// take several calls.
    ///
    /// - Returns: whether there is room.
    private func makeRoom(for bytes: Int, within time: Duration) throws(StorageFailure) -> Bool {
        if log.hasRoom(for: bytes, .grows) { return true }
        // In vain, if nothing has been removed since the last time.
        guard log.garbageBytes > lastGarbageBytes + bytes else { return false }
        let last = lastRewritten ?? log.currentSegment
        (lastGarbageBytes, lastRewritten) = (0, last)
        let end = ContinuousClock.now + time
        while !log.hasRoom(for: bytes, .grows) {
            guard ContinuousClock.now < end else { return false }
            var isRewritten = false
            do throws(StorageFailure) {
                isRewritten = try rewrite(before: last)
            } catch let error {
                // Where there is less than is reserved. What is unknown is whether something was rewritten.
                if error.status != .noSpace { throw StorageFailure(.unavailable, error.message) }
            }
            guard isRewritten else {
                (lastGarbageBytes, lastRewritten) = (log.garbageBytes, nil)
                return false
            }
        }
        lastRewritten = nil
        return true
    }

    /// Does what commits have left to do.
    func idle(_ call: CallContext) {
        log.idle()
        let end = ContinuousClock.now + Self.idleTime
        while log.rewriteBudget(for: 0) > 0, ContinuousClock.now < end, !call.isInterrupted {
            // What fails now fails again with the next commit, which tells of it.
            guard (try? rewrite(before: log.currentSegment)) == true else { return }
        }
    }
}
