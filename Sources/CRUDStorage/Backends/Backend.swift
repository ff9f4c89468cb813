package import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
package import CRUDPluginHost
import CRUDThreads
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
    let environment: StorageEnvironment
    let writes = WorkQueue<BackendWork>()
    /// One for each event loop that reads.
    let loopReaderCount: Int
    /// Where its storage is, for people; nil: an option of the plugin does not say it.
    package let storageLocation: String?
    private let condition: Mutex<Condition>
    private let storageDown = Atomic(false)
    /// To be called once the storage has been opened for the first time, on the writer's thread.
    let opened: @Sendable () -> Void
    private let registry = CollectionRegistry()
    /// The collections that are to be looked after.
    let kept = KeptCollections()
    let adoption: Adoption?
    let surveys = SurveyRequests()

    /// The state of a backend.
    package enum State: String, Sendable, CaseIterable {
        case opening, ready, down, closed
    }

    private struct Condition {
        var state = State.opening
        var restarts = 0
        var child: Child?
        var capabilities: Plugin.Capabilities
        var writer: Thread?
        var loopReaders: [PluginHandle] = []
        var readQueues: [ReadQueue] = []
        var notice: String?
        var backup: BackupStatus?
    }

    /// - Parameters:
    ///   - options: a JSON object, checked by the plugin before.
    ///   - loopCount: how many event loops will read from it.
    ///   - cache: for its records, if the plugin can tell when somebody else has written; nil: none.
    ///   - cachesRecords: whether they are cached for the present.
    ///   - expectedStorage: the storage that it must have.
    ///   - storageLocation: where that is, for people; nil: an option of the plugin does not say it.
    ///   - opened: called once the storage has been opened for the first time, on the writer's thread.
    ///   - admission: whether a collection may be there.
    ///   - creationCheck: whether several may be created together.
    ///   - adoption: how collections that have been found become known; nil: they are not looked for.
    package init(
        name: String, plugin: Plugin, options: [UInt8], loopCount: Int, cache: RecordCache? = nil,
        cachesRecords: Bool = true, expectedStorage: ExpectedStorage = .mayBeNew,
        storageLocation: String? = nil, logger: Logger, opened: @escaping @Sendable () -> Void = {},
        admission: @escaping CollectionAdmission, creationCheck: @escaping CollectionCreationCheck = { _, _ in nil },
        adoption: Adoption? = nil
    ) {
        self.adoption = adoption
        self.opened = opened
        self.storageLocation = storageLocation
        loopReaderCount = plugin.capabilities.contains(.fastReads) ? loopCount : 0
        let clock = CommitClock(readers: loopReaderCount)
        let canCache = plugin.isChild || plugin.table.pointee.data_version != nil
        environment = StorageEnvironment(
            plugin: plugin, options: options, clock: clock,
            cache: canCache ? cache.map { BackendCache($0, clock: clock, isWanted: cachesRecords) } : nil,
            trackers: ChangeTrackers(), writes: WriteMeter(), feeds: ChangeFeeds(),
            failures: FailureReporter(backend: name, logger: logger),
            identity: KnownIdentity(expected: expectedStorage), admission: admission, creationCheck: creationCheck)
        condition = Mutex(Condition(capabilities: plugin.capabilities))
    }

    package var name: String { failures.backend }
    package var plugin: Plugin { environment.plugin }
    /// What is cached of its records; nil where none ever is.
    package var cache: BackendCache? { environment.cache }
    /// The feeds of its collections' changes.
    package var feeds: ChangeFeeds { environment.feeds }
    var failures: FailureReporter { environment.failures }
    var logger: Logger { failures.logger }

    /// What has been counted of its writes.
    package var writeCounts: WriteMeter.Counts { environment.writes.counts }
    /// How many items wait for its threads, or are being read.
    package var queueLength: Int { writes.count + readQueues.reduce(0) { $0 + $1.load } }

    // MARK: State

    /// What an administrator sees of a backend.
    package struct Status: Sendable {
        package var state: State
        /// The last failure of its plugin, or how its child was last lost.
        package var lastError: String?
        /// What its plugin has to say of storage that is up, such as that the disk is full.
        package var notice: String?
        /// How often a child was started in the place of one that was lost.
        package var restarts: Int
        /// The child, while there is one.
        package var pid: Int32?
    }

    package var status: Status {
        condition.withLock {
            Status(
                state: isStorageDown && $0.state == .ready ? .down : $0.state, lastError: failures.lastError,
                notice: $0.notice, restarts: $0.restarts, pid: $0.child?.pid)
        }
    }

    /// The backup that is being made.
    package var backup: BackupStatus? {
        get { condition.withLock { $0.backup } }
        set { condition.withLock { $0.backup = newValue } }
    }

    /// What it can do: what its plugin can, less what its options take away.
    package var capabilities: Plugin.Capabilities { condition.withLock { $0.capabilities } }

    /// What tells its storage from others, empty where nothing does; nil until it has been opened.
    package var storageIdentity: String? { environment.identity.opened.map { $0?.description ?? "" } }

    /// Lets an opening make a storage that is not there, unless there are collections in it.
    package func allowNewStorage() { environment.identity.allowNewStorage() }

    /// The storage behind the plugin is lost, as the plugin has said; the plugin itself is open.
    package var isStorageDown: Bool { storageDown.load(ordering: .acquiring) }

    /// Whether the plugin has a notice for the administrator.
    var hasNotice: Bool { condition.withLock { $0.notice != nil } }

    /// The child that serves; nil for a plugin that was loaded, and while there is none.
    var child: Child? { condition.withLock { $0.state == .ready ? $0.child : nil } }

    /// The reader of event loop number `loop`, to be asked for once; nil while the backend is not ready.
    func reader(forLoop loop: Int) -> SnapshotReader? {
        let handle = condition.withLock {
            $0.state == .ready && loop < $0.loopReaders.count ? $0.loopReaders[loop] : nil
        }
        return handle.map(environment.snapshotReader)
    }

    func becomeReady(_ opened: OpenedPlugin, loopReaders: [PluginHandle], readQueues: [ReadQueue]) {
        condition.withLock { condition in
            condition.capabilities = opened.capabilities
            condition.loopReaders = loopReaders
            condition.readQueues = readQueues
            condition.state = .ready
            condition.child = opened.child
            // How a child was lost stays visible: the next one is there too soon for anybody to look.
            if opened.child == nil, !isStorageDown { failures.lastError = nil }
        }
    }

    /// The storage is about to be opened; until the plugin says otherwise it is there.
    func becomeOpening() {
        storageDown.store(false, ordering: .releasing)
        condition.withLock { $0.notice = nil }
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
        failures.lastError = reason
        condition.withLock { condition in
            condition.state = .down
            condition.child = nil
            condition.restarts += 1
        }
    }

    /// Whether others write to its storage, too.
    package var isShared: Bool { capabilities.contains(.shared) }

    /// The plugin has lost its storage, reached it again, or has a notice of it; callable on any thread.
    func storageState(isUp: Bool, _ reason: String) {
        let wasDown = storageDown.exchange(!isUp, ordering: .acquiringAndReleasing)
        condition.withLock { $0.notice = isUp && !wasDown && !reason.isEmpty ? reason : nil }
        guard wasDown == isUp else { return writes.wake() }
        if isUp {
            logger.notice("backend \(name) is up again: \(reason)")
        } else {
            logger.error("backend \(name) is down: \(reason)")
        }
        failures.lastError = isUp ? nil : reason
        writes.wake()
        if !isUp { feeds.wakeAll() }
    }

    /// What a client is told of a mutation that the plugin returned `status` for.
    package func error(status: Int) -> CRUDError { failures.error(status: status) }

    /// Logs a record whose item cannot be decoded.
    package func note(corrupt id: [UInt8], in collection: BackendCollection) {
        failures.note(corrupt: [id], in: collection)
    }

    /// Looks after collections whether or not anybody uses them: what expires is removed, and feeds are kept in order.
    ///
    /// - Parameter collections: with their settings, as they are served; they replace those that were given before.
    package func keep(_ collections: [BackendCollection]) {
        registry.endAdmission()
        kept.replace(collections)
        writes.wake()
    }

    /// Looks after the collection of a name as it is served now; nil: it is not in the backend any more.
    package func keep(_ name: [UInt8], as collection: BackendCollection?) {
        registry.endAdmission(of: name)
        kept.replace(name, with: collection)
        if collection != nil { writes.wake() }
    }

    /// Looks in the storage for collections that are not known yet, once it is open.
    ///
    /// - Parameter names: those to be looked for; nil: all.
    package func survey(_ names: Set<[UInt8]>? = nil) {
        guard adoption != nil else { return }
        surveys.ask(names.map { .names($0) } ?? .all)
        writes.wake()
    }

    /// Waits until what is in the storage is known; not for one that is not open.
    package func awaitSurvey(within timeout: Duration) {
        guard status.state == .ready else { return }
        surveys.wait(atMost: timeout)
    }

    // MARK: Collections

    /// The collection of that name in that format: one object for all who use it.
    package func collection(_ name: [UInt8], _ format: CollectionRule.Format) -> BackendCollection {
        registry.collection(name, format)
    }

    /// Has collections get the layouts that the rules in force say, before anybody serves by these rules.
    package func follow(_ rules: CollectionRules) { registry.follow(rules) }

    /// How many collections are in use, open or not.
    var collectionCount: Int { registry.count }

    /// How many collections have been looked at for changes of rules.
    var visitsOfCollections: Int { registry.visits }

    // MARK: Queues

    /// Hands work over. It is delivered back when it is done; `unavailable` where the plugin cannot be asked.
    func submit(_ work: BackendWork) {
        if isStorageDown { return refuse(work.item) }
        // Only the writer may open a collection; it passes the item on.
        if case .read(let read) = work, read.item.isReadable, hasReadQueues {
            submitToReaders(read)
        } else {
            submitToWriter(work)
        }
    }

    func submitToWriter(_ work: BackendWork) {
        if !writes.append(work) { refuse(work.item) }
    }

    /// Hands work to the thread that has the least to read.
    func submitToReaders(_ work: ReadWork) {
        guard let queue = readQueues.min(by: { $0.load < $1.load }) else { return submitToWriter(.read(work)) }
        if !queue.append(work) { refuse(work.item) }
    }

    /// Whether reads have threads of their own.
    var hasReadQueues: Bool { !readQueues.isEmpty }

    /// One for each thread that reads.
    var readQueues: [ReadQueue] { condition.withLock { $0.readQueues } }

    /// Removes an item that its loop has withdrawn: however long the plugin hangs, it is not to take memory.
    func remove(_ item: WorkItem) {
        if writes.removeFirst(where: { $0.item === item }) { return }
        for queue in readQueues where queue.remove(item) { return }
    }

    /// Refuses work that has been taken from the queue, unless it is withdrawn.
    func refuse(_ queued: [BackendWork]) {
        for work in queued where work.item.claim() { refuse(work.item) }
    }

    func refuse(_ item: WorkItem) {
        item.failure = failures.unavailable
        item.finish()
    }

    // MARK: Life

    func started(by writer: Thread) { condition.withLock { $0.writer = writer } }

    /// Has the threads finish what is queued and close the storage, and waits for that. No event loop may read from
    /// the backend any more. The first opening is not waited for, which may hang: should it come to an end, the storage
    /// is closed at once.
    package func stop() {
        writes.close()
        let writer = condition.withLock { $0.state == .opening ? nil : $0.writer.take() }
        writer?.join()
    }
}
