import CRUDModel
import CRUDPluginABI
import Logging
import Synchronization

/// The thread that owns a backend's storage: opens it, carries out what has queued up, closes it.
final class BackendWriter {
    private let backend: Backend
    private let table: UnsafePointer<crudd_plugin>
    private let storage: OpaquePointer
    /// Nil where the plugin was loaded.
    private let child: Child?
    /// To be closed when a child is lost.
    private var collections: [BackendCollection] = []
    private let failure = FailureReport()
    private var readers: [PluginHandle] = []
    /// What this thread reads with; made when it first reads.
    private var ownReader: BackendReader?
    private var searches = Rotation<Search>()
    private var deletions = Rotation<Deletion>()

    /// How long nothing must have come before the plugin is offered a quiet moment, and another one. The first is longer
    /// than any reader holds a view.
    private static let quiet = [Duration.milliseconds(150), .seconds(1)]

    /// The thread's whole life.
    static func run(_ backend: Backend, opened: (PluginFailure?) -> Void) {
        let host = PluginLog(backend: backend.name, logger: backend.logger)
        var supervision = Supervision(isChild: backend.plugin.isChild)
        var isFirst = true
        var hasBeenOpen = false
        while true {
            let pause: Duration
            do throws(PluginFailure) {
                let writer = try BackendWriter(backend, host)
                backend.becomeReady(
                    readers: writer.readers, capabilities: writer.capabilities, child: writer.child)
                if isFirst { opened(nil) }
                backend.logger.info("backend \(backend.name) is open")
                hasBeenOpen = true
                let loss = writer.work()
                if loss == nil { backend.become(.closed) }
                writer.close()
                guard let loss else { return }
                backend.lost(loss.reason)
                pause = supervision.failed(hasServed: loss.hasServed)
            } catch {
                backend.become(.down)
                _ = backend.report(error, during: "open")
                if isFirst { opened(error) }
                // A child's file may be replaced by a better one; what was loaded stays as it is.
                if error.isFinal, !(backend.plugin.isChild && hasBeenOpen) { return giveUp(backend) }
                pause = supervision.failed(hasServed: false)
            }
            isFirst = false
            if supervision.isOpen {
                backend.logger.error("backend \(backend.name) has failed \(supervision.failures) times in a row")
            }
            if pause > .zero, !wait(pause, refusingFor: backend) { return backend.become(.closed) }
        }
    }

    /// Nobody takes anything from the queue any more: what comes is refused, and what is there.
    private static func giveUp(_ backend: Backend) {
        backend.writes.close()
        while case .items(let items) = backend.writes.take(patience: nil) {
            for item in items where item.claim() { backend.refuse(item) }
        }
    }

    /// Waits until it is time to try again; false once the backend is to stop.
    private static func wait(_ pause: Duration, refusingFor backend: Backend) -> Bool {
        let end = ContinuousClock.now + pause
        while true {
            let rest = end - .now
            if rest <= .zero { return true }
            switch backend.writes.take(patience: rest) {
            case .items(let items): for item in items where item.claim() { backend.refuse(item) }
            case .nothing: return true
            case .woken: continue
            case .closed: return false
            }
        }
    }

    // MARK: Opening and closing

    private init(_ backend: Backend, _ host: PluginLog) throws(PluginFailure) {
        self.backend = backend
        let table = backend.plugin.table
        self.table = table
        storage = try backend.plugin.open(options: backend.options, host: host.pointer, failure) {
            [writes = backend.writes] in writes.wake()
        }
        child = backend.plugin.child(of: storage)
        do throws(PluginFailure) {
            for _ in 0..<backend.readerCount { readers.append(try openReader()) }
        } catch {
            close()
            throw error
        }
    }

    /// What the storage can do as it has been opened; never more than the plugin declares.
    private var capabilities: Plugin.Capabilities {
        if let child { return child.capabilities }
        guard let ask = table.pointee.backend_capabilities else { return backend.plugin.capabilities }
        return backend.plugin.capabilities.intersection(Plugin.Capabilities(rawValue: ask(storage)))
    }

    private func openReader() throws(PluginFailure) -> PluginHandle {
        var reader: OpaquePointer?
        try failure.check(table.pointee.open_reader(storage, &reader, failure.pointer))
        guard let reader else { throw PluginFailure(status: CRUDD_INTERNAL, message: "made no reader", pointer: "") }
        return PluginHandle(pointer: reader)
    }

    private func close() {
        for collection in collections { collection.handle = nil }
        for reader in readers { table.pointee.close_reader(reader.pointer) }
        table.pointee.close(storage)
    }

    // MARK: Work

    /// Why there is no more work with a storage that has been opened.
    private struct Loss {
        let reason: String
        let hasServed: Bool
    }

    /// Works until the queue is closed, or until the child is lost: answers how.
    private func work() -> Loss? {
        let readerThread = startReaderThread()
        defer {
            searches.end()
            deletions.end()
            backend.reads.close()
            readerThread?.join()
        }
        let reader = backend.readsApart ? nil : backend.workerReader()
        ownReader = reader
        var quietMoments = 0
        while true {
            if let child, let reason = child.loss { return Loss(reason: reason, hasServed: child.hasServed) }
            let isBusy = !searches.isEmpty || !deletions.isEmpty
            let patience = quietMoments < Self.quiet.count ? Self.quiet[quietMoments] : nil
            switch backend.writes.take(patience: isBusy ? .zero : patience) {
            case .items(let items):
                carryOut(items, reader)
                quietMoments = 0
            case .nothing where isBusy: break
            case .nothing:
                table.pointee.idle?(storage)
                quietMoments += 1
            case .woken: continue
            case .closed: return nil
            }
            if let reader { searches.advance { $0.advance(with: reader) } }
            deletions.advance { $0.advance(with: self) }
        }
    }

    private func startReaderThread() -> Thread? {
        guard backend.readsApart else { return nil }
        do throws(ThreadFailure) {
            return try Thread(named: "r:\(backend.name)") { [backend] in
                if let reader = backend.workerReader() { ReadRun.work(for: backend, with: reader) }
            }
        } catch {
            backend.logger.critical("backend \(backend.name): no thread for its reader (errno \(error.code))")
            backend.reads.close()
            return nil
        }
    }

    /// Carries out items in order, neighbouring batches of mutations in one call, and neighbouring reads too.
    private func carryOut(_ items: [WorkItem], _ reader: BackendReader?) {
        var writes = WriteRun(self)
        var reads: [ReadBatch] = []
        for item in items {
            if let batch = item as? MutationBatch {
                carryOut(&reads, reader)
                guard batch.claim() else { continue }
                batch.openCollections(with: openForWriting)
                if batch.isAtomic {
                    writes.carryOut()
                    var write = AtomicWrite(batch, self)
                    write.carryOut()
                } else {
                    writes.append(batch)
                }
            } else if let batch = item as? ReadBatch {
                writes.carryOut()
                reads.append(batch)
            } else if let item = item as? LongItem {
                writes.carryOut()
                carryOut(&reads, reader)
                begin(item, reader)
            }
        }
        writes.carryOut()
        carryOut(&reads, reader)
        ownReader?.endSnapshot()
    }

    /// Reads single records, on this thread.
    ///
    /// - Throws: `unavailable` where the plugin gives no reader.
    func lookup() throws(CRUDError) -> RecordLookup { RecordLookup(try readerOfThisThread()) }

    /// Reads on this thread, and lets go of the view.
    func read<Result>(_ body: (BackendReader) throws(CRUDError) -> Result) throws(CRUDError) -> Result {
        let reader = try readerOfThisThread()
        defer { reader.endSnapshot() }
        return try body(reader)
    }

    private func readerOfThisThread() throws(CRUDError) -> BackendReader {
        if let ownReader { return ownReader }
        do throws(PluginFailure) {
            let handle = try openReader()
            readers.append(handle)
            let reader = BackendReader(backend: backend, handle: handle)
            ownReader = reader
            return reader
        } catch {
            throw backend.report(error, during: "open_reader")
        }
    }

    /// Takes up long work, or passes it on to the thread that reads.
    private func begin(_ item: LongItem, _ reader: BackendReader?) {
        do throws(CRUDError) {
            if !item.collection.isOpen { try open(item.collection, flags: 0) }
            item.isPrepared = true
        } catch {
            guard item.claim() else { return }
            item.failure = error
            return item.finish()
        }
        if reader == nil, item is Search {
            if !backend.reads.append(item) { backend.refuse(item) }
        } else if item.claim() {
            if let search = item as? Search { searches.append(search) }
            if let deletion = item as? Deletion { deletions.append(deletion) }
        }
    }

    private func carryOut(_ batches: inout [ReadBatch], _ reader: BackendReader?) {
        guard !batches.isEmpty else { return }
        defer { batches.removeAll() }
        for batch in batches {
            for (index, read) in batch.reads.enumerated() where !read.collection.isOpen {
                do throws(CRUDError) { try open(read.collection, flags: 0) } catch { batch.refusals[index] = error }
            }
            batch.isPrepared = true
        }
        if let reader {
            let claimed = batches.filter { $0.claim() }
            ReadRun.carryOut(claimed, with: reader)
            reader.endSnapshot()
            for batch in claimed { batch.finish() }
        } else {
            for batch in batches where !backend.reads.append(batch) { backend.refuse(batch) }
        }
    }

    /// Removes records that still have these revisions.
    ///
    /// - Throws: where nothing was applied, or `outcome_unknown`.
    func remove(
        _ records: [(id: [UInt8], revision: [UInt8])], from collection: BackendCollection
    ) throws(CRUDError) -> [MutationOutcome] {
        guard !records.isEmpty else { return [] }
        let batch = MutationBatch { _ in }
        for record in records {
            batch.append(
                Mutation(
                    .remove, in: collection, id: batch.store(record.id.span),
                    precondition: .revision(batch.store(record.revision.span))))
        }
        return try write(batch.mutations.map { crudd_mutation($0, in: batch) }).map(MutationOutcome.init)
    }

    /// What a peer is told of a mutation that the plugin answered with `status`.
    func error(status: Int) -> CRUDError { backend.error(status: status) }

    /// Has the plugin carry out mutations.
    ///
    /// - Parameter isAtomic: whether all take effect or none does.
    /// - Returns: an outcome for each.
    /// - Throws: where nothing was applied, or `outcome_unknown`; `unsupported` where all are to take effect or none, and
    ///   the plugin, as it has been opened, has no transactions: it might not know that it is asked for one.
    func write(_ mutations: [crudd_mutation], isAtomic: Bool = false) throws(CRUDError) -> [crudd_outcome] {
        guard !isAtomic || backend.capabilities.contains(.transactions) else {
            throw CRUDError(.unsupported, "backend \(backend.name) has no transactions")
        }
        var outcomes = [crudd_outcome](repeating: crudd_outcome(), count: mutations.count)
        let status = mutations.withUnsafeBufferPointer { mutations in
            outcomes.withUnsafeMutableBufferPointer { outcomes in
                var request = crudd_write()
                request.struct_size = UInt32(MemoryLayout<crudd_write>.size)
                request.flags = isAtomic ? UInt32(CRUDD_WRITE_ATOMIC) : 0
                request.mutations = mutations.baseAddress
                request.outcomes = outcomes.baseAddress
                request.count = mutations.count
                return write(&request)
            }
        }
        if Int(status) != CRUDD_OK { throw backend.report(failure.take(status: status), during: "write") }
        return outcomes
    }

    private func write(_ request: inout crudd_write) -> crudd_status {
        if backend.hasSeveralLoops { backend.commits.add(1, ordering: .acquiringAndReleasing) }
        let status = table.pointee.write(storage, &request, failure.pointer)
        // Before anybody is told, so that a read which begins after the answer finds its view stale; and after a failure
        // too, since a write may have been applied all the same.
        backend.commits.add(1, ordering: .acquiringAndReleasing)
        return status
    }

    // MARK: Collections

    /// Opens the collection of a mutation where it is not open yet, and creates it where the mutation makes a record.
    private func openForWriting(_ mutation: Mutation) throws(CRUDError) {
        let collection = mutation.collection
        if collection.isOpen { return }
        try open(collection, flags: 0)
        guard !collection.isOpen, mutation.canCreate else { return }
        if let refusal = backend.admission(collection) { throw refusal }
        try open(collection, flags: UInt32(CRUDD_OPEN_CREATE))
    }

    /// Opens a collection; one that is not there stays closed.
    private func open(_ collection: BackendCollection, flags: UInt32) throws(CRUDError) {
        var opened: OpaquePointer?
        let status = collection.withSpecification(flags: flags) {
            table.pointee.open_collection(storage, $0, &opened, failure.pointer)
        }
        switch Int(status) {
        case CRUDD_OK:
            if let child {
                collection.set(number: ChildTable.collection(opened).number, inChild: child.identity)
                collections.append(collection)
            }
            collection.handle = opened
        case CRUDD_NOT_FOUND where flags == 0: _ = failure.take(status: status)
        default: throw backend.report(failure.take(status: status), during: "open_collection")
        }
    }
}
