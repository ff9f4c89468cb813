import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
import CRUDThreads
import Logging

/// Executes what is queued for a backend while its storage is open, on the backend's thread.
final class BackendWorker {
    private let backend: Backend
    private let storage: OpenStorage
    private let builder: IndexBuilder
    /// What is done between writes.
    private let background: [any BackgroundWork]
    /// Nil: commits are not delayed.
    private var delay: CommitDelay?
    /// How many outcomes were unknown at the last look, and when readers see what became of them.
    private var resolving: (count: UInt64, end: Duration) = (0, .zero)
    private var searches = RoundRobin<ReadTask>()
    private var writing = RoundRobin<WriteTask>()
    /// The long writes among them, by session.
    private var longWrites: [Int: LongWrite] = [:]
    private let longItems = LongItemSchedule()
    private var readerThreads: [(thread: Thread, queue: ReadQueue)] = []

    /// How long nothing must have come before the plugin is told that it is idle, and told again. The first is longer
    /// than any reader holds a snapshot.
    private static let idlePauses = [Duration.milliseconds(150), .seconds(1)]
    /// How long after an outcome that is unknown readers see what became of it: no snapshot is kept for so long.
    private static let resolvingPause = Duration.milliseconds(150)
    /// How often it is told so as long as it has a notice for the administrator.
    private static let noticePause = Duration.seconds(5)
    /// How often a plugin whose storage is down is told that it is idle, so that it can reconnect.
    private static let reconnectPause = Duration.seconds(1)
    /// How long storage may be down before it is closed and opened again. A plugin whose storage another daemon has
    /// taken over cannot recover in place, as its sequence numbers are no longer the highest.
    private static let longestOutage = Duration.seconds(10)
    /// The most threads that read for one backend, whatever its plugin prefers.
    private static let maximumReaders = 64

    /// Opens the storage; the backend is ready then.
    init(_ backend: Backend, _ callbacks: PluginHostCallbacks) throws(PluginFailure) {
        self.backend = backend
        let (writes, cache) = (backend.writes, backend.cache)
        let storage = try OpenStorage(backend.environment, callbacks) {
            // Whoever writes from now on may have a counter of commits of their own.
            cache?.open(nil)
            writes.wake()
        }
        self.storage = storage
        let builder = IndexBuilder(storage)
        self.builder = builder
        let remover = ExpiryRemover(storage, logger: backend.logger)
        let feeds = FeedKeeper(storage)
        let survey = backend.adoption.map { StorageSurvey(storage, backend.surveys, $0) }
        background = [CollectionOpener(storage, backend.kept), builder, feeds, remover] + [survey].compactMap(\.self)
        storage.openedCollection = { [kept = backend.kept] collection in
            builder.add(collection)
            kept.add(collection)
            remover.add(collection)
            feeds.add(collection)
        }
        storage.isWriting = { [unowned self] collection in writing.contains { $0.writes(collection) } }
        do throws(PluginFailure) {
            let capabilities = storage.opened.capabilities
            if CommitDelay.pays(with: capabilities) { delay = CommitDelay() }
            let loopReaders = try readers(capabilities.contains(.fastReads) ? backend.loopReaderCount : 0)
            let isConcurrent = capabilities.contains(.concurrentReads)
            for reader in try readers(isConcurrent ? min(storage.opened.readers, Self.maximumReaders) : 0) {
                start(reader)
            }
            backend.becomeReady(storage.opened, loopReaders: loopReaders, readQueues: readerThreads.map(\.queue))
        } catch {
            stopReaders()
            storage.close()
            throw error
        }
    }

    private func readers(_ count: Int) throws(PluginFailure) -> [PluginHandle] {
        var readers: [PluginHandle] = []
        for _ in 0..<count { readers.append(try storage.makeReader()) }
        return readers
    }

    func close() { storage.close() }

    /// Why there is no more work with a storage that has been opened.
    struct Loss {
        let reason: String
        /// Whether it had executed anything that somebody waited for.
        let hasServed: Bool
    }

    /// Works until the queue is closed, the child is lost, or the storage has been down for long.
    ///
    /// - Returns: how the child was lost, or why the storage is to be opened again.
    func work() -> Loss? {
        defer {
            endTasks()
            stopReaders()
            backend.environment.feeds.wakeAll()
        }
        var idlePeriods = 0
        var downSince: ContinuousClock.Instant?
        while true {
            if let child = storage.opened.child, let reason = child.loss {
                return Loss(reason: reason, hasServed: child.hasServed)
            }
            let isDown = backend.isStorageDown
            downSince = isDown ? downSince ?? .now : nil
            if isDown { endTasks() }
            let untilResolved = resolveOutcomes(isDown: isDown)
            if canReopen, let downSince, ContinuousClock.now - downSince > Self.longestOutage {
                return Loss(reason: "its storage stays down and is opened again", hasServed: true)
            }
            let taken = backend.writes.take(
                timeout: isDown ? Self.reconnectPause : Self.sooner(timeout(idlePeriods), untilResolved),
                gathering: delay?.next)
            switch taken {
            case .items(let queued) where isDown: backend.refuse(queued)
            case .items(let items):
                let start = MonotonicTime.now
                execute(items)
                delay?.committed(
                    items.reduce(0) { $0 + ($1.operationCount ?? 0) }, in: MonotonicTime.now - start,
                    waiting: backend.writes.operationCount)
                let pause = backend.environment.trackers.takePause()
                if pause > .zero { Thread.pause(pause) }
                idlePeriods = 0
            case .timedOut where !isDown && (isBusy || backgroundDue == .zero): break
            case .timedOut:
                storage.idle()
                idlePeriods += 1
            case .woken: continue
            case .closed: return nil
            }
            if isDown { continue }
            if !searches.isEmpty, let reader = try? storage.reader() {
                searches.advance { $0.advance(with: reader, child: storage.opened.child, backend.failures) }
            }
            writing.advance(advance)
            for work in background { work.advanceIfDue() }
        }
    }

    /// How long until something is to be done in the background; nil: nothing is.
    private var backgroundDue: Duration? { background.compactMap(\.timeUntilDue).min() }

    /// Whether the storage can be closed while event loops work: none of them has a reader of the plugin's.
    private var canReopen: Bool { storage.opened.child != nil || backend.loopReaderCount == 0 }

    private var isBusy: Bool { !searches.isEmpty || !writing.isEmpty }

    private func timeout(_ idlePeriods: Int) -> Duration? {
        if isBusy { return [searches.timeout, writing.timeout, backgroundDue].compactMap(\.self).min() }
        let repeatedPause = backend.hasNotice ? Self.noticePause : nil
        let idlePause = idlePeriods < Self.idlePauses.count ? Self.idlePauses[idlePeriods] : repeatedPause
        return Self.sooner(backgroundDue, idlePause)
    }

    private static func sooner(_ one: Duration?, _ other: Duration?) -> Duration? {
        guard let one, let other else { return one ?? other }
        return min(one, other)
    }

    /// Raises the mark of the feeds once the last outcome that was unknown is known to readers, whatever else there is
    /// to do: when the storage has been there for a moment since.
    ///
    /// - Returns: how long until then; nil: no outcome is unknown.
    private func resolveOutcomes(isDown: Bool) -> Duration? {
        let feeds = backend.environment.feeds
        let count = feeds.unknownOutcomes
        guard count > 0 else { return nil }
        let now = MonotonicTime.now
        if isDown || count != resolving.count { resolving = (count, now + Self.resolvingPause) }
        guard resolving.end <= now else { return resolving.end - now }
        feeds.raise()
        resolving.count = 0
        return nil
    }

    private func start(_ reader: PluginHandle) {
        let queue = ReadQueue()
        do throws(ThreadFailure) {
            let thread = try Thread(named: "r:\(backend.name)") { [backend] in
                ReaderThread.run(for: backend, queue, with: backend.environment.snapshotReader(reader))
            }
            readerThreads.append((thread, queue))
        } catch {
            backend.logger.critical(
                "backend \(backend.name): the system has no thread for a reader (errno \(error.code))")
        }
    }

    private func stopReaders() {
        for (_, queue) in readerThreads { queue.close() }
        for (thread, _) in readerThreads { thread.join() }
    }

    /// Delivers what is in progress as `unavailable`.
    private func endTasks() {
        searches.end()
        writing.end()
        longWrites.removeAll()
    }

    private func advance(_ task: WriteTask) -> Bool {
        let isDone = task.advance(with: storage)
        if isDone, let session = task.owner, longWrites[session] === task { longWrites[session] = nil }
        return isDone
    }

    // MARK: Executing

    /// Executes items in order, neighbouring batches of mutations in one call, and neighbouring reads too.
    private func execute(_ items: [BackendWork]) {
        var commit = GroupCommit(storage)
        var reads: [ReadBatch] = []
        for work in items {
            switch work {
            case .write(let batch):
                execute(&reads)
                if batch.isAtomic { execute(&commit) }
                execute(batch, &commit)
            case .read(.batch(let batch)):
                execute(&commit)
                reads.append(batch)
            case .read(.task(let task)):
                execute(&commit, &reads)
                begin(task)
            case .read(.call(let call)):
                execute(&commit, &reads)
                if call.claim() { execute(call) }
            case .bulkWrite(let task):
                execute(&commit, &reads)
                begin(task)
            case .reindex(let request):
                execute(&commit, &reads)
                if request.claim() { builder.rebuild(request) }
            case .call(let call):
                execute(&commit, &reads)
                if call.claim() { execute(call) }
            }
        }
        execute(&commit, &reads)
        storage.releaseSnapshot()
    }

    /// Executes what has been gathered.
    private func execute(_ commit: inout GroupCommit, _ reads: inout [ReadBatch]) {
        execute(&commit)
        execute(&reads)
    }

    /// Adds mutations to a commit, or executes them where they are one of their own, or join a long write.
    private func execute(_ batch: MutationBatch, _ commit: inout GroupCommit) {
        if let write = batch.session.flatMap({ longWrites[$0] }) { return write.append(batch) }
        guard batch.claim() else { return }
        if batch.isAtomic { return execute(atomic: batch) }
        batch.openCollections(of: batch.mutations.indices, with: storage.openForWriting)
        commit.append(batch)
    }

    private func execute(_ commit: inout GroupCommit) {
        commit.execute()
        for batch in commit.takeDeferred() { longWrite(of: batch)?.append(deferred: batch) }
    }

    /// Executes an atomic batch, or begins with it where that takes long.
    private func execute(atomic batch: MutationBatch) {
        var commit = AtomicCommit(batch, storage)
        switch commit.advance() {
        case .done: batch.finish()
        // It begins again when it is its turn.
        case .pauses, .needs: longWrite(of: batch)?.append(AtomicCommit(batch, storage), of: batch)
        }
    }

    /// The long write that a session's mutations join from now on.
    private func longWrite(of batch: MutationBatch) -> LongWrite? {
        guard let session = batch.session else { return nil }
        if let write = longWrites[session] { return write }
        let write = LongWrite(batch, of: session, longItems)
        longWrites[session] = write
        writing.append(write)
        return write
    }

    private func execute(_ call: StorageCall) {
        call.execute(with: storage)
        call.finish()
    }

    private func execute(_ call: ReadCall) {
        do throws(CRUDError) { call.execute(with: try storage.reader()) } catch { call.failure = error }
        storage.releaseSnapshot()
        call.finish()
    }

    /// Begins slices of reading, or passes them on to a thread that reads.
    private func begin(_ task: ReadTask) {
        let isPassedOn = backend.hasReadQueues
        guard prepare(task, needsReader: !isPassedOn) else { return }
        if isPassedOn {
            backend.submitToReaders(.task(task))
        } else if task.claim() {
            searches.append(task)
        }
    }

    private func begin(_ task: WriteTask) {
        if prepare(task, needsReader: false), task.claim() { writing.append(task) }
    }

    /// Opens the collection of a sliced task; false where that fails, and the task with it.
    private func prepare(_ task: SlicedTask, needsReader: Bool) -> Bool {
        do throws(CRUDError) {
            try storage.openForClients(task.collection)
            task.isPrepared = true
            task.isAbsent = !task.collection.isOpen
            if needsReader { _ = try storage.reader() }
            return true
        } catch {
            guard task.claim() else { return false }
            task.failure = error
            task.finish()
            return false
        }
    }

    private func execute(_ batches: inout [ReadBatch]) {
        guard !batches.isEmpty else { return }
        defer { batches.removeAll() }
        for batch in batches {
            for (position, read) in batch.reads.enumerated() where !read.collection.isOpen {
                do throws(CRUDError) { try storage.openForClients(read.collection) } catch {
                    batch.refuse(position, error)
                }
            }
            batch.isPrepared = true
        }
        guard !backend.hasReadQueues else {
            for batch in batches { backend.submitToReaders(.batch(batch)) }
            return
        }
        let claimed = batches.filter { $0.claim() }
        do throws(CRUDError) {
            let reader = try storage.reader()
            reader.execute(claimed)
            reader.releaseSnapshot()
        } catch {
            for batch in claimed { batch.failure = error }
        }
        for batch in claimed { batch.finish() }
    }
}
