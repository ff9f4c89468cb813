import CLinux
import CRUDModel
import CRUDPluginHost
import CRUDThreads
import Glibc
import Logging

/// Removes records that have expired, on the writer's thread, in steps of about half a millisecond.
///
/// Nobody sees a record from the instant on at which it expires, whether or not it has been removed; so there is time.
/// Clients come first: whatever has queued up is executed between two steps, and a step is followed by a pause as long
/// as its processor time, or half as long as it took. The processor time counts because for so long a read may find no
/// processor, while the time that the disk takes holds up writes alone. Where many records have expired at once and
/// steps of that length do not suffice, they grow with the time that this lasts.
///
/// When a collection's next record expires is known from the commits (``ExpirySchedule``) and from the plugin. What
/// somebody else writes beside this daemon, and a clock that is set, are noticed within a minute, the latter with the
/// next write at the latest.
final class ExpiryRemover: BackgroundWork {
    private let storage: OpenStorage
    private let logger: Logger
    /// Open collections, by the plugin's addresses.
    private var collections: [OpaquePointer: BackendCollection] = [:]
    /// Those that are to be asked about whatever is known of them.
    private var unknown: [OpaquePointer] = []
    private var nextStep = MonotonicTime.now
    private var nextLook = MonotonicTime.now + lookPause
    private var limit = firstLimit
    /// Since when every step has left something to the next; nil: the last one has not.
    private var backlogBegin: Duration?
    /// By how much the clock that people set is ahead of the one that nobody sets.
    private var clockOffset = ExpiryRemover.currentClockOffset
    private let isNeeded: Bool

    private static let firstLimit = 50
    private static let limits = 16...5000
    private static let stepTime = Duration.microseconds(500)
    /// A backlog that lasts longer gets longer steps.
    private static let backlogTimeout = Duration.seconds(20)
    private static let stepDuration = Duration.milliseconds(5)
    private static let lookPause = Duration.seconds(60)
    private static let retryPause = Duration.seconds(1)
    /// How long what gets copies is left alone, in milliseconds.
    private static let copyPause: Int64 = 1000
    /// By how much the clock may be set without a word, in milliseconds.
    private static let tolerance: Int64 = 60_000

    init(_ storage: OpenStorage, logger: Logger) {
        self.storage = storage
        self.logger = logger
        isNeeded = storage.opened.capabilities.contains(.expiry)
    }

    /// Adds a collection that has been opened.
    func add(_ collection: BackendCollection) {
        guard isNeeded, let handle = collection.handle else { return }
        if collections.updateValue(collection, forKey: handle) == nil { unknown.append(handle) }
    }

    var timeUntilDue: Duration? {
        guard isNeeded, !collections.isEmpty else { return nil }
        let now = MonotonicTime.now
        let due = unknown.isEmpty ? storage.expiry.earliest - CallContext.now : 0
        let wait = min(Self.lookPause, .milliseconds(max(0, due)))
        return max(.zero, max(nextStep - now, min(wait, nextLook - now)))
    }

    func advanceIfDue() {
        noteClock()
        guard timeUntilDue == .zero else { return }
        let begin = MonotonicTime.now
        if begin >= nextLook { look() }
        guard let (handle, collection) = next() else { return }
        do throws(CRUDError) {
            guard collection.handle == handle else {
                collections[handle] = nil
                storage.expiry.forget(handle)
                return
            }
            guard !collection.isBeingCopied else {
                storage.expiry.set(CallContext.now + Self.copyPause, for: handle)
                return
            }
            let beginTime = ProcessorTime.ofThread
            let removed = try storage.removeExpired(from: handle, atMost: limit)
            storage.expiry.set(removed.next, for: handle)
            let duration = MonotonicTime.now - begin
            // What a child takes is not known.
            let time = storage.opened.child == nil ? ProcessorTime.ofThread - beginTime : duration
            adapt(to: time, duration, removed.count)
            nextStep = begin + duration + (removed.count > 0 ? min(max(time, duration / 2), Self.stepDuration) : .zero)
        } catch {
            // It has been logged. The others come first.
            storage.expiry.set(CallContext.now + Self.retryPause.milliseconds, for: handle)
            if error.code == .unavailable { nextStep = MonotonicTime.now + Self.retryPause }
        }
    }

    private func adapt(to time: Duration, _ duration: Duration, _ count: Int) {
        let now = MonotonicTime.now
        backlogBegin = count < limit ? nil : backlogBegin ?? now
        let backlog = max(1, (now - (backlogBegin ?? now)) / Self.backlogTimeout)
        let stepTime = min(Self.stepTime * (backlog * backlog), Self.stepDuration)
        if time > stepTime * 2 || duration > Self.stepDuration * 2 {
            limit = max(Self.limits.lowerBound, limit / 2)
        } else if time < stepTime, duration < Self.stepDuration, count == limit {
            limit = min(Self.limits.upperBound, limit * 2)
        }
    }

    /// The collection whose turn it is.
    private func next() -> (OpaquePointer, BackendCollection)? {
        if let handle = unknown.popLast() { return collections[handle].map { (handle, $0) } }
        // The one that is overdue for longest: where one has very many, the others must not wait for the last of them.
        guard let due = storage.expiry.first, due.time <= CallContext.now else {
            storage.expiry.findEarliest()
            return nil
        }
        guard let collection = collections[due.collection] else {
            storage.expiry.forget(due.collection)
            return nil
        }
        return (due.collection, collection)
    }

    /// Notes what the commits do not tell.
    private func look() {
        nextLook = MonotonicTime.now + Self.lookPause
        unknown = Array(collections.keys)
    }

    private func noteClock() {
        guard isNeeded, !collections.isEmpty else { return }
        let offset = Self.currentClockOffset
        let change = offset - clockOffset
        clockOffset = offset
        guard abs(change) > Self.tolerance else { return }
        let (direction, outcome) =
            change > 0 ? ("forward", "records have expired earlier") : ("back", "records that are there expire later")
        logger.warning(
            """
            backend \(storage.failures.backend): the clock has been set \(direction) by \(abs(change) / 1000) s; \
            \(outcome) by that
            """)
    }

    private static var currentClockOffset: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return CallContext.now - (Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}
