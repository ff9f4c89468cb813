package import CRUDModel
package import CRUDPluginHost
package import CRUDThreads
package import Logging
import Synchronization

/// One configured storage: a plugin with options, its life, and the queues to its workers.
///
/// A backend has one writer, a thread that takes whatever has queued up and hands it to the plugin as one batch, so
/// that load turns into group commit without a timer or a setting. Reads that are not made by an event loop have
/// threads of their own where the plugin reads concurrently, as many as it prefers; else they share the writer's.
///
/// A plugin that says at its opening that it is not available now leaves the backend down: the writer tries again with
/// a growing pause, and whatever arrives meanwhile is refused as `unavailable`. A plugin in a child process can be lost
/// while it serves; the writer then starts it again as ``RestartPolicy`` says.
package final class Backend: Sendable {
    package let name: String
    package let plugin: Plugin
    let logger: Logger
    let clock: CommitClock
    let options: [UInt8]
    /// Asked before a collection is created, on the writer's thread; returns why it must not be.
    let admission: Admission
    let writes = WorkQueue<WorkItem>()
    /// One for each event loop that reads.
    let loopReaderCount: Int
    private let condition: Mutex<Condition>
    private let nextReadQueue = Atomic<Int>(0)
    private let storageDown = Atomic(false)

    package typealias Admission = @Sendable (BackendCollection) -> CRUDError?

    /// The state of a backend.
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
        var loopReaders: [PluginHandle] = []
        var readQueues: [WorkQueue<WorkItem>] = []
        var log = FailureLog()
    }

    /// - Parameters:
    ///   - options: a JSON object, checked by the plugin before.
    ///   - loopCount: how many event loops will read from it.
    package init(
        name: String, plugin: Plugin, options: [UInt8], loopCount: Int, logger: Logger,
        admission: @escaping Admission
    ) {
        self.name = name
        self.plugin = plugin
        self.options = options
        self.logger = logger
        self.admission = admission
        loopReaderCount = plugin.capabilities.contains(.fastReads) ? loopCount : 0
        clock = CommitClock(readers: loopReaderCount)
        condition = Mutex(Condition(capabilities: plugin.capabilities))
    }

    // MARK: State

    /// What an administrator sees of a backend.
    package struct Status: Sendable {
        package var state: State
        /// The last failure of its plugin, or how its child was last lost.
        package var lastError: String?
        /// How often a child was started in the place of one that was lost.
        package var restarts: Int
        /// The child, while there is one.
        package var pid: Int32?
    }

    package var status: Status {
        condition.withLock {
            Status(
                state: isStorageDown && $0.state == .ready ? .down : $0.state, lastError: $0.lastError,
                restarts: $0.restarts, pid: $0.child?.pid)
        }
    }

    /// What it can do: what its plugin can, less what its options take away.
    package var capabilities: Plugin.Capabilities { condition.withLock { $0.capabilities } }

    /// The storage behind the plugin is lost, as the plugin has said; the plugin itself is open.
    var isStorageDown: Bool { storageDown.load(ordering: .acquiring) }

    /// The child that serves; nil for a plugin that was loaded, and while there is none.
    var child: Child? { condition.withLock { $0.state == .ready ? $0.child : nil } }

    func snapshotReader(_ handle: PluginHandle) -> SnapshotReader {
        SnapshotReader(handle, of: plugin.table, clock: clock) { [self] failure, call in
            report(failure, during: call)
        }
    }

    /// The reader of event loop number `loop`, to be asked for once; nil while the backend is not ready.
    func reader(forLoop loop: Int) -> SnapshotReader? {
        let handle = condition.withLock {
            $0.state == .ready && loop < $0.loopReaders.count ? $0.loopReaders[loop] : nil
        }
        return handle.map(snapshotReader)
    }

    func becomeReady(_ opened: OpenedPlugin, loopReaders: [PluginHandle], readQueues: [WorkQueue<WorkItem>]) {
        condition.withLock { condition in
            condition.capabilities = opened.capabilities
            condition.loopReaders = loopReaders
            condition.readQueues = readQueues
            condition.state = .ready
            condition.child = opened.child
            // How a child was lost stays visible: the next one is there too soon for anybody to look.
            if opened.child == nil, !isStorageDown { condition.lastError = nil }
        }
    }

    /// The storage is about to be opened; until the plugin says otherwise it is there.
    func becomeOpening() { storageDown.store(false, ordering: .releasing) }

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

    /// The plugin has lost its storage, or reached it again; callable on any thread.
    func storageState(isUp: Bool, _ reason: String) {
        guard storageDown.exchange(!isUp, ordering: .acquiringAndReleasing) == isUp else { return }
        if isUp {
            logger.notice("backend \(name) is up again: \(reason)")
        } else {
            logger.error("backend \(name) is down: \(reason)")
        }
        condition.withLock { $0.lastError = isUp ? nil : reason }
        writes.wake()
    }

    /// Notes a failed call for the administrator.
    ///
    /// - Returns: what a client is told.
    func report(_ failure: PluginFailure, during call: String) -> CRUDError {
        let line = condition.withLock { condition in
            condition.lastError = failure.message
            return condition.log.line(for: "backend \(name): \(call): \(failure.message)")
        }
        if let line { logger.error("\(line)") }
        return error(status: failure.status)
    }

    // MARK: Queues

    /// Hands an item over. It is delivered back when it is done; `unavailable` where the plugin cannot be asked.
    package func submit(_ item: WorkItem) {
        if isStorageDown { return refuse(item) }
        // Only the writer may open a collection; it passes the item on.
        if (item is ReadBatch || item is SearchTask) && item.isReadable && hasReadQueues {
            submitToReaders(item)
        } else {
            submitToWriter(item)
        }
    }

    func submitToWriter(_ item: WorkItem) {
        if !writes.append(item) { refuse(item) }
    }

    /// Hands an item to one of the threads that read.
    func submitToReaders(_ item: WorkItem) {
        let queues = readQueues
        guard !queues.isEmpty else { return submitToWriter(item) }
        let next = nextReadQueue.add(1, ordering: .relaxed).oldValue
        if !queues[next % queues.count].append(item) { refuse(item) }
    }

    /// Whether reads have threads of their own.
    var hasReadQueues: Bool { !readQueues.isEmpty }

    /// One for each thread that reads.
    var readQueues: [WorkQueue<WorkItem>] { condition.withLock { $0.readQueues } }

    func refuse(_ item: WorkItem) {
        item.failure = error(status: PluginFailure.unavailableStatus)
        item.finish()
    }

    // MARK: Life

    /// Starts the backend's thread, which opens the storage.
    ///
    /// - Parameter opened: called once, on that thread, with the outcome of the first attempt. After a failure that is
    ///   final (``PluginFailure/isFinal``) no other attempt is made.
    package func start(opened: @escaping @Sendable (PluginFailure?) -> Void) throws(ThreadFailure) {
        let writer = try Thread(named: "w:\(name)") { [self] in BackendSupervisor.run(self, opened: opened) }
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
