package import CRUDModel
package import Logging
import Synchronization

/// One configured storage: a plugin with options, its life, and the queues to its workers.
///
/// A backend has one writer, a thread that takes whatever has queued up and hands it to the plugin as one batch, so that
/// load turns into group commit without a timer or a setting. Reads that are not made by an event loop, of the plugin's
/// memory or over a ``LookupChannel`` of its own to a child, have a thread of their own where the plugin reads
/// concurrently, else they share the writer's.
///
/// A plugin that says at its opening that it is not available now leaves the backend down: the writer tries again with a
/// growing pause, and whatever arrives meanwhile is answered `unavailable`. A plugin in a child process can be lost while
/// it serves; the writer then starts it again as ``Supervision`` says.
package final class Backend: Sendable {
    package let name: String
    package let plugin: Plugin
    let logger: Logger

    /// Changes with every write; a reader's view that is older is stale. With several event loops it is odd while a write
    /// is going on, which may be visible already though nobody has been told: no view is kept then, lest one loop should
    /// show what another does not see yet.
    let commits = Atomic<UInt64>(0)

    let options: [UInt8]
    /// Asked before a collection is created, on the writer's thread; answers what its writers are to be told if it must not be.
    let admission: Admission
    let writes = WorkQueue()
    let reads = WorkQueue()
    /// One for the backend's own threads, and one for each event loop that reads.
    let readerCount: Int
    private let condition: Mutex<Condition>

    typealias Admission = @Sendable (BackendCollection) -> CRUDError?

    /// How a backend is.
    package enum State: String, Sendable {
        case opening, ready, down, closed
    }

    private struct Condition {
        var state = State.opening
        var lastError: String?
        var restarts = 0
        var child: Child?
        var capabilities: Plugin.Capabilities
        var writer: Thread?
        var readers: [PluginHandle] = []
        var log = FailureLog()
    }

    /// - Parameters:
    ///   - options: a JSON object, checked by the plugin before.
    ///   - loopCount: how many event loops will read from it.
    package init(
        name: String, plugin: Plugin, options: [UInt8], loopCount: Int, logger: Logger,
        admission: @escaping @Sendable (BackendCollection) -> CRUDError?
    ) {
        self.name = name
        self.plugin = plugin
        self.options = options
        self.readerCount = plugin.capabilities.contains(.readsFast) ? loopCount + 1 : 1
        self.logger = logger
        self.admission = admission
        condition = Mutex(Condition(capabilities: plugin.capabilities))
        readsConcurrently = Atomic(plugin.capabilities.contains(.readsConcurrently))
    }

    // MARK: State

    /// How a backend is.
    package struct Status: Sendable {
        package var state: State
        /// What its plugin last complained of, or how its child was last lost.
        package var lastError: String?
        /// How often a child was started in the place of one that was lost.
        package var restarts: Int
        /// The child, while there is one.
        package var pid: Int32?
    }

    /// How the backend is.
    package var status: Status {
        condition.withLock {
            Status(state: $0.state, lastError: $0.lastError, restarts: $0.restarts, pid: $0.child?.process.pid)
        }
    }

    /// What it can do: what its plugin can, less what its options take away.
    package var capabilities: Plugin.Capabilities { condition.withLock { $0.capabilities } }

    /// Whether event loops may read from it themselves.
    package var isReadOnLoops: Bool { plugin.capabilities.contains(.readsFast) }

    /// The reader of event loop number `loop`, to be asked for once; nil while the backend is not ready.
    package func reader(forLoop loop: Int) -> BackendReader? { reader(at: loop + 1) }

    /// A channel on which an event loop looks up records in the backend's child; nil where no more is to be had.
    package func lookupChannel() -> LookupChannel? {
        guard plugin.isChild, let child = condition.withLock({ $0.state == .ready ? $0.child : nil }) else {
            return nil
        }
        return LookupChannel(to: child, of: self)
    }

    /// The reader of the backend's own threads.
    func workerReader() -> BackendReader? { reader(at: 0) }

    private func reader(at index: Int) -> BackendReader? {
        let handle = condition.withLock { $0.state == .ready ? $0.readers[index] : nil }
        return handle.map { BackendReader(backend: self, handle: $0) }
    }

    func becomeReady(readers: [PluginHandle], capabilities: Plugin.Capabilities, child: Child?) {
        if plugin.isChild {
            readsConcurrently.store(capabilities.contains(.readsConcurrently), ordering: .releasing)
        }
        condition.withLock { condition in
            condition.capabilities = capabilities
            condition.readers = readers
            condition.state = .ready
            condition.child = child
            // How a child was lost stays to be seen: the next one is there too soon for anybody to look.
            if child == nil { condition.lastError = nil }
        }
        reads.reopen()
    }

    func become(_ state: State) {
        condition.withLock { condition in
            condition.state = state
            condition.child = nil
        }
    }

    /// Notes that a child was lost and another one is to be started.
    func lost(_ reason: String) {
        logger.error("backend \(name): \(reason)")
        condition.withLock { condition in
            condition.state = .down
            condition.child = nil
            condition.lastError = reason
            condition.restarts += 1
        }
    }

    /// Notes a failed call for the administrator and tells what its caller is to be told.
    func report(_ failure: PluginFailure, during call: String) -> CRUDError {
        let line = condition.withLock { condition in
            condition.lastError = failure.message
            return condition.log.line(for: "backend \(name): \(call): \(failure.message)")
        }
        if let line { logger.error("\(line)") }
        return error(status: failure.status)
    }

    // MARK: Work

    /// Hands a batch over. It is delivered back when the plugin has answered; `unavailable` where nothing can be asked.
    package func submit(_ batch: MutationBatch) {
        if !writes.append(batch) { refuse(batch) }
    }

    /// Hands a batch over. It is delivered back when the plugin has answered; `unavailable` where nothing can be asked.
    package func submit(_ batch: ReadBatch) {
        submit(reading: batch)
    }

    /// Hands a search over. It is delivered back when it is done; `unavailable` where nothing can be asked.
    package func submit(_ search: Search) {
        submit(reading: search)
    }

    private func submit(reading item: WorkItem) {
        // Only the writer may open a collection; it passes the item on.
        if !(readsApart && item.isReadable ? reads : writes).append(item) { refuse(item) }
    }

    /// Hands a deletion over. It is delivered back when it is done; `unavailable` where nothing can be asked.
    package func submit(_ deletion: Deletion) {
        if !writes.append(deletion) { refuse(deletion) }
    }

    /// Whether views of several event loops have to agree.
    var hasSeveralLoops: Bool { readerCount > 2 }

    /// Whether reads have a thread of their own.
    var readsApart: Bool { readsConcurrently.load(ordering: .acquiring) }

    /// A child's is known when it has been opened.
    private let readsConcurrently: Atomic<Bool>

    func refuse(_ item: WorkItem) {
        item.failure = CRUDError(.unavailable, "backend \(name) is not available")
        item.finish()
    }

    // MARK: Life

    /// Starts the backend's thread, which opens the storage.
    ///
    /// - Parameter opened: called once, on that thread, with the outcome of the first try. After a failure that can
    ///   never be (``PluginFailure/isFinal``) nothing is tried again.
    package func start(opened: @escaping @Sendable (PluginFailure?) -> Void) throws(ThreadFailure) {
        let writer = try Thread(named: "w:\(name)") { [self] in BackendWriter.run(self, opened: opened) }
        condition.withLock { $0.writer = writer }
    }

    /// Has the threads finish what is queued and close the storage, and waits for that. No event loop may read from
    /// the backend any more. The first opening is not waited for, which may hang: should it come to an end, the storage
    /// is closed at once.
    package func stop() {
        writes.close()
        let writer = condition.withLock { $0.state == .opening ? nil : $0.writer.take() }
        writer?.join()
    }
}

/// A handle that a plugin has made. Who may use it when is said where it is kept.
struct PluginHandle: @unchecked Sendable {
    // @unchecked: an address; the host follows the contract's rules on threads.
    let pointer: OpaquePointer
}
