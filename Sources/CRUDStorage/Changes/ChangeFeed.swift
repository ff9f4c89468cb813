import Synchronization

/// What is remembered of the changes of one open collection. Any thread may ask.
///
/// The plugin keeps records in the order of their sequence numbers, and with them what was removed. This object knows
/// how far back that reaches, up to where it has got, and who waits for more.
package final class ChangeFeed: Sendable {
    /// What the plugin remembers.
    package struct History: Sendable, Equatable {
        /// Another one where the collection was dropped, moved from or to a place without a feed, or its feed was off
        /// meanwhile.
        package var identity: UInt64
        /// The highest sequence number of a removal that has been forgotten; 0: none has been.
        package var forgotten: UInt64
    }

    private struct State {
        var history: History
        var isTrimming = false
        /// Whether the plugin could not be asked what has become of that.
        var isUnknown = false
    }

    private let state: Mutex<State>
    private let isOpenNow = Atomic(true)
    private let isCompleteNow = Atomic(false)
    private let changeCount = Atomic<UInt64>(0)
    private let endNumber = Atomic<UInt64>(.max)
    /// A bit for each event loop that has to be told of the next change.
    private let waitingLoops = Atomic<UInt32>(0)

    init(_ history: History) {
        state = Mutex(State(history: history))
    }

    /// What can be asked for; nil while removals are being forgotten, which changes it.
    var history: History? { state.withLock { $0.isTrimming ? nil : $0.history } }

    /// Whether removals are being forgotten, which ends by itself.
    var isTrimming: Bool { state.withLock { $0.isTrimming && !$0.isUnknown } }

    /// Whether it has to be found out what can be asked for: the storage was lost while removals were being forgotten.
    var isUnknown: Bool { state.withLock { $0.isUnknown } }

    /// Whether the collection is open and has this feed.
    package var isOpen: Bool { isOpenNow.load(ordering: .acquiring) }

    /// Whether every record has a sequence number, as far as is known.
    package var isComplete: Bool {
        get { isCompleteNow.load(ordering: .acquiring) }
        set { isCompleteNow.store(newValue, ordering: .releasing) }
    }

    /// Counts the changes, or what is told of them, since the collection was opened: a page that begins after this was
    /// read shows all of these.
    package var changes: UInt64 { changeCount.load(ordering: .sequentiallyConsistent) }

    /// No page begins that ends behind this number: the collection is about to be served from another place.
    var end: UInt64 {
        get { endNumber.load(ordering: .acquiring) }
        set { endNumber.store(newValue, ordering: .sequentiallyConsistent) }
    }

    // MARK: The writer's side, and the plugin's

    func beginTrimming() { state.withLock { $0.isTrimming = true } }

    func endTrimming(_ history: History) { state.withLock { $0 = State(history: history) } }

    func failTrimming() { state.withLock { $0.isUnknown = true } }

    /// Notes a change that has been committed, or that can be read by now.
    ///
    /// - Returns: the loops to be told, a bit for each.
    func changed() -> UInt32 {
        changeCount.add(1, ordering: .sequentiallyConsistent)
        return takeWaitingLoops()
    }

    func takeWaitingLoops() -> UInt32 { waitingLoops.exchange(0, ordering: .sequentiallyConsistent) }

    func close() -> UInt32 {
        isOpenNow.store(false, ordering: .releasing)
        return takeWaitingLoops()
    }

    // MARK: The loops' side

    /// Has a loop told of the next change. What has been committed before has to be looked for afterwards.
    package func await(onLoop loop: Int) {
        waitingLoops.bitwiseOr(1 << UInt32(loop), ordering: .sequentiallyConsistent)
    }
}
