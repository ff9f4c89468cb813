import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDThreads
import Logging

/// A backend's storage while it is open: the calls that the writer's thread makes of the plugin.
final class OpenStorage {
    let environment: StorageEnvironment
    let opened: OpenedPlugin
    let table: UnsafePointer<crudd_plugin>
    let failure = FailureReport()
    let context = CallContext()
    let funnel: CommitFunnel
    /// What a plugin may report: so that the numbers above it do not run out.
    private static let maximumLastSequence = UInt64(1) << 62
    /// The sequence number of the last mutation.
    var lastSequence: UInt64
    /// Those that are open, by name, to be closed with the storage and when they are dropped.
    private var collections: [[UInt8]: [BackendCollection]] = [:]
    /// Those that are looked at without being open.
    var probes = CollectionProbes()
    private var indexSets: [BackendCollection.Key: IndexSet] = [:]
    /// What is remembered of the changes of open collections.
    private(set) var feeds: [BackendCollection.Key: ChangeFeed] = [:]
    /// The collections that are to have a feed and cannot have one here.
    private var withoutFeed: Set<BackendCollection.Key> = []
    /// The collections that could not be opened, and those that could not be created.
    private var openings = FailedOpenings()
    private var creations = FailedOpenings()
    /// When records expire.
    let expiry = ExpirySchedule()
    private var pluginReaders: [PluginHandle] = []
    /// The last backup; it may have ended.
    var backup: RunningBackup?
    /// What this thread reads with; made when it first reads.
    private var ownReader: SnapshotReader?
    /// Called when a collection has been opened or has another layout, and when its indexes are to be built again.
    var openedCollection: (BackendCollection) -> Void = { _ in }
    /// Whether tasks that write a collection are in progress.
    var isWriting: (BackendCollection.Key) -> Bool = { _ in false }

    /// Opens the storage.
    ///
    /// - Parameter lost: called, on any thread, when a child has ended by itself.
    init(
        _ environment: StorageEnvironment, _ callbacks: PluginHostCallbacks, lost: @escaping @Sendable () -> Void
    ) throws(PluginFailure) {
        self.environment = environment
        table = environment.plugin.table
        opened = try environment.plugin.open(options: environment.options, host: callbacks.pointer, lost: lost)
        guard opened.lastSequence < Self.maximumLastSequence else {
            table.pointee.close(opened.storage)
            throw PluginFailure(
                status: CRUDD_INTERNAL, message: "the plugin reports the sequence number \(opened.lastSequence)")
        }
        do throws(PluginFailure) {
            try environment.identity.note(opened.identity)
        } catch {
            table.pointee.close(opened.storage)
            throw error
        }
        lastSequence = opened.lastSequence
        environment.feeds.open(
            lastSequence: lastSequence, areShared: opened.capabilities.isSuperset(of: [.shared, .sequences]))
        if let place = opened.commitCounter, opened.child != nil { environment.cache?.open(CommitCounter(at: place)) }
        // The clock first: who finds a cached record gone must find older snapshots stale.
        // The feeds last: who learns of a commit from them finds everything else up to date.
        funnel = CommitFunnel(
            [environment.clock, environment.trackers] + [environment.cache].compactMap(\.self)
                + [environment.writes, expiry, environment.feeds])
        if opened.child == nil, !opened.capabilities.contains(.fastReads) { followVersion() }
    }

    /// Has the cache ask the plugin who else has written, by a reader that serves nothing else.
    private func followVersion() {
        guard let cache = environment.cache, opened.capabilities.contains(.concurrentReads),
            let reader = try? makeReader()
        else { return }
        let plugin = environment.plugin
        cache.open(nil, version: { plugin.table.pointee.data_version?(reader.pointer) ?? 0 })
    }

    var failures: FailureReporter { environment.failures }

    /// Closes the storage, and its collections and readers before.
    func close() {
        // Its owner holds the storage.
        openedCollection = { _ in }
        backup?.end()
        for collection in collections.values.joined() { close(collection) }
        probes.close()
        for set in indexSets.values { set.replace() }
        for feed in feeds.values { environment.feeds.close(feed) }
        environment.cache?.open(nil)
        for reader in pluginReaders { table.pointee.close_reader(reader.pointer) }
        table.pointee.close(opened.storage)
    }

    // MARK: Reading

    /// Makes a reader of the plugin's; it is closed with the storage.
    func makeReader() throws(PluginFailure) -> PluginHandle {
        var reader: OpaquePointer?
        try failure.check(table.pointee.open_reader(opened.storage, &reader, failure.pointer))
        guard let reader else {
            throw PluginFailure(status: CRUDD_INTERNAL, message: "open_reader returned no reader")
        }
        let handle = PluginHandle(pointer: reader)
        pluginReaders.append(handle)
        return handle
    }

    /// The reader of this thread.
    ///
    /// - Throws: `unavailable` where the plugin makes none.
    func reader() throws(CRUDError) -> SnapshotReader {
        if let ownReader { return ownReader }
        do throws(PluginFailure) {
            let reader = environment.snapshotReader(try makeReader())
            ownReader = reader
            return reader
        } catch {
            throw failures.report(error, during: "open_reader")
        }
    }

    /// Reads single records, on this thread.
    func currentRecords() throws(CRUDError) -> CurrentRecordReader { CurrentRecordReader(try reader()) }

    func releaseSnapshot() { ownReader?.releaseSnapshot() }

    // MARK: Writing

    /// Has the plugin apply mutations.
    ///
    /// - Parameter isAtomic: whether all take effect or none does.
    /// - Returns: an outcome for each.
    /// - Throws: where nothing was applied, or `outcome_unknown`; `unsupported` for an atomic write where the plugin,
    ///   as it has been opened, has no transactions.
    func write(_ mutations: ArraySlice<PluginMutation>, isAtomic: Bool = false) throws(CRUDError) -> [MutationOutcome] {
        guard !isAtomic || opened.capabilities.contains(.transactions) else {
            throw CRUDError(.unsupported, "backend \(failures.backend) has no transactions")
        }
        var outcomes = [crudd_outcome](repeating: .sized(), count: mutations.count)
        // The records and keys that the mutations point to.
        var keys = [crudd_bytes](repeating: crudd_bytes(), count: mutations.reduce(0) { $0 + $1.keyCount })
        let records = UnsafeMutablePointer<crudd_record>.allocate(capacity: mutations.count)
        defer { records.deallocate() }
        let status = keys.withUnsafeMutableBufferPointer { keys in
            var key = keys.baseAddress
            let raw = mutations.enumerated().map { position, mutation in
                defer { key = key.map { $0 + mutation.keyCount } }
                return mutation.raw(
                    sequence: sequence(of: mutation.mutation), record: records + position, keys: key)
            }
            return raw.withUnsafeBufferPointer { raw in
                outcomes.withUnsafeMutableBufferPointer { write(raw, $0, isAtomic: isAtomic) }
            }
        }
        if Int(status) != CRUDD_OK { throw failures.report(failure.take(status: status), during: "write") }
        return outcomes.map(MutationOutcome.init)
    }

    private func sequence(of mutation: Mutation) -> UInt64 {
        guard mutation.kind == .put || mutation.kind == .remove else { return 0 }
        if let sequence = mutation.sequence {
            // What is written here later, to whichever collection, has a higher one.
            lastSequence = max(lastSequence, sequence)
            return sequence
        }
        lastSequence += 1
        return lastSequence
    }

    private func write(
        _ mutations: UnsafeBufferPointer<crudd_mutation>, _ outcomes: UnsafeMutableBufferPointer<crudd_outcome>,
        isAtomic: Bool
    ) -> crudd_status {
        var request = crudd_write.sized()
        request.flags = isAtomic ? UInt32(CRUDD_WRITE_ATOMIC) : 0
        request.mutations = mutations.baseAddress
        request.mutation_size = MemoryLayout<crudd_mutation>.stride
        request.outcomes = outcomes.baseAddress
        request.outcome_size = MemoryLayout<crudd_outcome>.stride
        request.count = mutations.count
        let call = context.begin()
        return funnel.write(mutations, UnsafeBufferPointer(outcomes), isAtomic: isAtomic) {
            table.pointee.write(opened.storage, call, &request, failure.pointer)
        }
    }

    /// Removes records that still have these revisions.
    ///
    /// - Returns: an outcome for each.
    func remove(
        _ records: [(id: [UInt8], revision: [UInt8])], from collection: BackendCollection
    ) -> [MutationOutcome] {
        let batch = MutationBatch { _ in }
        for record in records {
            batch.append(
                Mutation(
                    .remove, in: collection, id: batch.store(record.id.span),
                    precondition: .revision(batch.store(record.revision.span))))
        }
        return apply(batch.pluginMutations[...])
    }

    /// Has the plugin apply mutations. Where one of them may be why the call fails, each half is tried by itself.
    ///
    /// - Returns: an outcome for each.
    func apply(_ mutations: ArraySlice<PluginMutation>) -> [MutationOutcome] {
        if mutations.isEmpty { return [] }
        do throws(CRUDError) {
            return try write(mutations)
        } catch {
            guard error.mayConcernOneAlone, mutations.count > 1 else {
                return Array(repeating: .refused(error), count: mutations.count)
            }
            let middle = mutations.startIndex + mutations.count / 2
            return apply(mutations[..<middle]) + apply(mutations[middle...])
        }
    }

    func idle() {
        table.pointee.idle?(opened.storage, context.begin())
    }

    // MARK: Collections

    /// Opens the collection of a mutation where it is not open yet, and creates it where the mutation creates a record.
    /// The plugin is told the collection's layout where it has not been yet.
    func openForWriting(_ mutation: Mutation) throws(CRUDError) {
        let collection = mutation.collection
        if collection.isCurrent, collection.isAdmitted { return }
        if mutation.canCreate, let error = creations.error(for: collection.key, at: MonotonicTime.now) { throw error }
        try openForClients(collection)
        guard mutation.canCreate else { return }
        if !collection.isOpen {
            if let refusal = environment.admission(collection, true, mutation.creator) { throw refusal }
            collection.isAdmitted = true
            do throws(CRUDError) {
                try open(collection, flags: Self.creates)
            } catch {
                creations.note(error, for: collection.key, at: MonotonicTime.now)
                throw error
            }
        }
        creations.forget(collection.key)
    }

    private func openUnlessRefused(_ collection: BackendCollection) throws(CRUDError) {
        if let error = openings.error(for: collection.key, at: MonotonicTime.now) { throw error }
        do throws(CRUDError) {
            try open(collection)
        } catch {
            openings.note(error, for: collection.key, at: MonotonicTime.now)
            throw error
        }
        openings.forget(collection.key)
    }

    /// Opens a collection that clients use, unless it is open. One that has been found, not created, is made known: it
    /// is listed, and protected from being orphaned, as any other.
    func openForClients(_ collection: BackendCollection) throws(CRUDError) {
        if !collection.isCurrent { try openUnlessRefused(collection) }
        guard collection.isOpen, !collection.isAdmitted else { return }
        if let refusal = environment.admission(collection, false, nil) { throw refusal }
        collection.isAdmitted = true
    }

    /// The flag with which a collection is created.
    static let creates = UInt32(CRUDD_OPEN_CREATE)

    /// Opens a collection, or tells the plugin the layout of one that is open; one that does not exist stays closed.
    func open(_ collection: BackendCollection, flags: UInt32 = 0) throws(CRUDError) {
        let layout = collection.numberedLayout
        endFormerLayout(of: collection, layout.layout)
        guard let handle = try tell(layout.layout, of: collection, flags: flags) else { return }
        if let child = opened.child {
            collection.set(number: child.number(of: handle), inChild: child.identity)
        }
        attachIndexes(to: collection, layout.layout)
        try attachFeed(to: collection, layout.layout, handle)
        if collections[collection.name]?.contains(where: { $0 === collection }) != true {
            collections[collection.name, default: []].append(collection)
        }
        collection.cacheNumber = environment.cache?.opened(collection, as: handle) ?? 0
        collection.told(layout)
        collection.handle = handle
        openedCollection(collection)
    }

    /// What the layout in force has and another one has not ends before the plugin is told: whoever reads by it now
    /// finds that out afterwards.
    private func endFormerLayout(of collection: BackendCollection, _ layout: CollectionLayout) {
        let key = collection.key
        if let known = indexSets[key], known.paths != layout.indexPaths {
            known.replace()
            indexSets[key] = nil
            collection.indexes = nil
        }
        if !keepsFeed(by: layout), let feed = feeds.removeValue(forKey: key) {
            environment.feeds.close(feed)
            collection.feed = nil
        }
        // Should the call fail, nobody knows what the plugin has.
        if collection.toldLayoutNumber != collection.layoutNumber { collection.told(nil) }
    }

    /// Closes a collection, in one format or in every: reads find nothing there until it has been opened again.
    func closeCollection(named name: [UInt8], in format: CollectionRule.Format? = nil) {
        let formats = format.map { [$0] } ?? CollectionRule.Format.allCases
        let known = collections.removeValue(forKey: name) ?? []
        for collection in known where formats.contains(collection.format) { close(collection) }
        let others = known.filter { !formats.contains($0.format) }
        if !others.isEmpty { collections[name] = others }
        probes.close { $0.name == name && formats.contains($0.format) }
        for format in formats {
            let key = BackendCollection.Key(name: name, format: format)
            indexSets.removeValue(forKey: key)?.replace()
            if let feed = feeds.removeValue(forKey: key) { environment.feeds.close(feed) }
            withoutFeed.remove(key)
        }
    }

    private func close(_ collection: BackendCollection) {
        environment.cache?.closes(collection)
        if let handle = collection.handle { expiry.forget(handle) }
        collection.close()
    }

    /// Drops a collection, of which nothing is being read.
    ///
    /// - Returns: whether it was there.
    func dropCollection(named name: [UInt8]) throws(CRUDError) -> Bool {
        closeCollection(named: name)
        let status = environment.clock.write {
            name.withUnsafeBufferPointer {
                table.pointee.drop_collection(opened.storage, context.begin(), crudd_bytes($0), failure.pointer)
            }
        }
        switch Int(status) {
        case CRUDD_OK: return true
        case CRUDD_NOT_FOUND:
            _ = failure.take(status: status)
            return false
        default: throw failures.report(failure.take(status: status), during: "drop_collection")
        }
    }

    /// Has the plugin forget indexes and history of a collection that is not served and is going to be, if it is there:
    /// its feed begins then, and no cursor of an earlier one is valid.
    func beginAnew(_ collection: BackendCollection) throws(CRUDError) {
        endFormerLayout(of: collection, CollectionLayout())
        collection.told(nil)
        _ = try tell(CollectionLayout(), of: collection)
    }

    /// Has all keys of an open collection forgotten, so that its indexes are built again.
    func forgetKeys(of collection: BackendCollection) throws(CRUDError) {
        guard var layout = collection.toldLayout?.layout else { return }
        collection.indexes?.beginRebuild()
        defer { openedCollection(collection) }
        layout.indexPaths = []
        _ = try tell(layout, of: collection)
        try restoreIndexes(of: collection)
    }

    /// Tells the plugin the layout in force again, for the case that this has failed after the indexes were dropped.
    func restoreIndexes(of collection: BackendCollection) throws(CRUDError) {
        if let layout = collection.toldLayout?.layout { _ = try tell(layout, of: collection) }
    }

    /// - Returns: the plugin's handle; nil if the collection does not exist and is not to be created.
    private func tell(
        _ layout: CollectionLayout, of collection: BackendCollection, flags: UInt32 = 0
    ) throws(CRUDError) -> OpaquePointer? {
        var handle: OpaquePointer?
        let call = context.begin()
        let sequences = keepsFeed(by: layout) ? UInt32(CRUDD_OPEN_SEQUENCES) : 0
        let indexes = opened.capabilities.contains(.indexes) ? layout.indexPaths : []
        let status = collection.withSpecification(flags: flags | sequences, indexes: indexes) {
            table.pointee.open_collection(opened.storage, call, $0, &handle, failure.pointer)
        }
        switch Int(status) {
        case CRUDD_OK: return handle
        case CRUDD_NOT_FOUND where flags == 0:
            _ = failure.take(status: status)
            return nil
        default: throw failures.report(failure.take(status: status), during: "open_collection")
        }
    }

    private func attachIndexes(to collection: BackendCollection, _ layout: CollectionLayout) {
        let key = collection.key
        if let known = indexSets[key] {
            collection.indexes = known
            return
        }
        guard opened.capabilities.contains(.indexes), !layout.indexPaths.isEmpty else { return }
        let indexes = IndexSet(layout.indexPaths)
        indexSets[key] = indexes
        collection.indexes = indexes
    }

    /// Whether a collection has a feed: it is to have one, and the plugin can keep it.
    private func keepsFeed(by layout: CollectionLayout) -> Bool {
        layout.retention != nil && opened.capabilities.contains(.sequences)
    }

    private func attachFeed(
        to collection: BackendCollection, _ layout: CollectionLayout, _ handle: OpaquePointer
    ) throws(CRUDError) {
        let key = collection.key
        guard keepsFeed(by: layout) else {
            if layout.retention != nil { noteMissingFeed(of: collection, key) }
            return
        }
        if feeds[key] == nil {
            let feed = ChangeFeed(try readHistory(of: handle))
            feeds[key] = feed
            environment.feeds.open(feed, named: key.name, of: handle)
        }
        collection.feed = feeds[key]
    }

    /// Logs once that a collection which is to have a feed has none here. Where the plugin cannot keep one the
    /// configuration has another place for the collection: it is being moved.
    private func noteMissingFeed(of collection: BackendCollection, _ key: BackendCollection.Key) {
        guard withoutFeed.insert(key).inserted else { return }
        let name = quoted(collection.name)
        if environment.plugin.capabilities.contains(.sequences) {
            failures.logger.warning(
                """
                backend \(failures.backend): collection \(name) has no feed of changes as long as it is here: \
                the storage cannot keep one with these options
                """)
        } else {
            failures.logger.notice(
                """
                backend \(failures.backend): collection \(name) has no feed of changes as long as it is here: \
                the feed begins where the collection is being moved to
                """)
        }
    }
}
