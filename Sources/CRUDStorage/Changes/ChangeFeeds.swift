package import CRUDPluginABI
import Synchronization

/// The feeds of a backend's open collections: follows commits, and tells event loops whose requests wait for one.
///
/// **The high-water mark.** One writer gives out sequence numbers and has the plugin commit them in their order, so
/// that the fate of everything up to the highest number of the last commit is known: it is committed, or never will
/// be. (Copies that a move makes have lower numbers, in a collection that no client follows yet.) A page ends at that
/// number, which is read before its snapshot is taken; so it shows no change whose predecessors may still come.
///
/// **Outcomes that are unknown** raise the mark, too, once they are certain to readers: above what the storage has
/// noted, perhaps, which then gives those numbers again after a restart. So a cursor ends at the last change of its
/// page or at ``confirmedMark``, whichever is higher, and what lies between is searched again.
///
/// **Shared storage** is written by others, too, and numbers the changes of all of them itself. Then the number at
/// which a page ends is read from the storage, with what that remembers, before each page (``ChangesTask``); the plugin
/// tells when more can be read, which is no more than a reason to look again.
package final class ChangeFeeds: CommitObserver {
    private let feeds = Mutex<[UInt: Named]>([:])
    private let isUsed = Atomic(false)
    private let readableNumber = Atomic<UInt64>(0)
    private let committedNumber = Atomic<UInt64>(0)
    /// How many outcomes have become unknown since the mark was raised, and the highest number that they are about.
    private let unknownCount = Atomic<UInt64>(0)
    private let unknownNumber = Atomic<UInt64>(0)
    private let openingCount = Atomic<UInt64>(0)
    private let isSharedNow = Atomic(false)
    /// By the number of the loop.
    private let wakers = Mutex<[(@Sendable () -> Void)?]>([])

    private struct Named {
        let name: [UInt8]
        let feed: ChangeFeed
    }

    /// Whether the storage numbers changes, of which others make some.
    var areShared: Bool { isSharedNow.load(ordering: .acquiring) }

    /// Up to this sequence number everything is committed, or never will be.
    package var highWaterMark: UInt64 { readableNumber.load(ordering: .acquiring) }

    /// The storage has noted that numbers up to this one are used; at most the high-water mark.
    package var confirmedMark: UInt64 { committedNumber.load(ordering: .acquiring) }

    /// Counts the feeds that have been opened.
    package var openings: UInt64 { openingCount.load(ordering: .acquiring) }

    /// Has a loop told when a feed that it awaits has changed or ended; replaces what it has registered before.
    package func register(loop: Int, _ wake: @escaping @Sendable () -> Void) {
        wakers.withLock { wakers in
            while wakers.count <= loop { wakers.append(nil) }
            wakers[loop] = wake
        }
    }

    // MARK: The writer's side

    func open(lastSequence: UInt64, areShared: Bool = false) {
        isSharedNow.store(areShared, ordering: .releasing)
        unknownCount.store(0, ordering: .releasing)
        unknownNumber.store(0, ordering: .relaxed)
        readableNumber.store(lastSequence, ordering: .releasing)
        committedNumber.store(lastSequence, ordering: .releasing)
    }

    /// The outcome of a call is unknown, which has given mutations numbers up to this one.
    func becomeUncertain(through sequence: UInt64) {
        unknownNumber.store(max(unknownNumber.load(ordering: .relaxed), sequence), ordering: .relaxed)
        unknownCount.add(1, ordering: .acquiringAndReleasing)
    }

    /// How many outcomes are unknown; while there is one ``raise()`` has yet to be called.
    var unknownOutcomes: UInt64 { unknownCount.load(ordering: .acquiring) }

    /// The storage has been there for some time since the last outcome that was unknown: by now it has one, which
    /// readers see.
    func raise() {
        guard unknownOutcomes > 0 else { return }
        readableNumber.store(max(highWaterMark, unknownNumber.load(ordering: .relaxed)), ordering: .releasing)
        unknownCount.store(0, ordering: .releasing)
        if areShared { return wake(.max) }
        for named in feeds.withLock({ Array($0.values) }) { wake(named.feed.changed()) }
    }

    /// The storage has noted numbers up to this one: with its own commit, or with the history of another storage, of
    /// which what a collection here has to show has been copied.
    func advance(to sequence: UInt64) {
        if sequence > highWaterMark { readableNumber.store(sequence, ordering: .releasing) }
        if sequence > confirmedMark { committedNumber.store(sequence, ordering: .releasing) }
    }

    /// A collection of this name has been opened; `handle` is what the plugin calls it.
    func open(_ feed: ChangeFeed, named name: [UInt8], of handle: OpaquePointer) {
        feeds.withLock { $0[UInt(bitPattern: handle)] = Named(name: name, feed: feed) }
        isUsed.store(true, ordering: .releasing)
        openingCount.add(1, ordering: .acquiringAndReleasing)
        // Some may have waited for a collection that was not there.
        wake(.max)
    }

    func close(_ feed: ChangeFeed) {
        feeds.withLock { feeds in
            for (address, known) in feeds where known.feed === feed { feeds[address] = nil }
            isUsed.store(!feeds.isEmpty, ordering: .releasing)
        }
        _ = feed.close()
        wake(.max)
    }

    // MARK: The plugin's side

    /// More changes of a collection can be read; callable on any thread.
    func changed(named name: [UInt8]) {
        let known = feeds.withLock { $0.values.filter { $0.name == name } }
        // It may have been made by others.
        if known.isEmpty { openingCount.add(1, ordering: .acquiringAndReleasing) }
        wake(known.isEmpty ? .max : known.reduce(0) { $0 | $1.feed.changed() })
    }

    /// Has every loop look after the requests that wait.
    func wakeAll() { wake(.max) }

    private func wake(_ loops: UInt32) {
        guard loops != 0 else { return }
        let wakers = wakers.withLock { $0 }
        for (loop, wake) in wakers.enumerated() where loops & (1 << UInt32(loop)) != 0 { wake?() }
    }

    // MARK: Commits

    package func willCommit(_ mutations: UnsafeBufferPointer<crudd_mutation>) {}

    package func committed(_ commit: borrowing Commit) {
        let statuses = commit.outcomes.lazy.map { Int($0.status) }
        let isOK = Int(commit.status) == CRUDD_OK
        if Int(commit.status) == CRUDD_OUTCOME_UNKNOWN || isOK && statuses.contains(CRUDD_OUTCOME_UNKNOWN) {
            becomeUncertain(
                through: commit.mutations.reduce(0) { max($0, $1.record?.pointee.sequence ?? 0) })
        }
        guard isOK else { return }
        if commit.isAtomic, statuses.contains(where: { $0 != CRUDD_OK }) { return }
        if areShared { return }
        // What has been refused leaves no trace in the storage: after a restart its number may be given out again.
        var highest: UInt64 = 0
        for (index, mutation) in commit.mutations.enumerated() where Int(commit.outcomes[index].status) == CRUDD_OK {
            highest = max(highest, mutation.record?.pointee.sequence ?? 0)
        }
        advance(to: highest)
        if isUsed.load(ordering: .acquiring) { noteChanges(of: commit) }
    }

    private func noteChanges(of commit: borrowing Commit) {
        var last: (address: UInt, feed: ChangeFeed?) = (0, nil)
        var loops: UInt32 = 0
        for (index, mutation) in commit.mutations.enumerated() where Int(commit.outcomes[index].status) == CRUDD_OK {
            guard let sequence = mutation.record?.pointee.sequence, sequence != 0 else { continue }
            let address = UInt(bitPattern: mutation.collection)
            if last.address != address { last = (address, feeds.withLock { $0[address]?.feed }) }
            if let feed = last.feed { loops |= feed.changed() }
        }
        wake(loops)
    }
}
