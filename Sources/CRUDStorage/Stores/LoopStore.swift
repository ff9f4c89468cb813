import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery

/// Reads on the event loop itself, where the plugin reads a record in microseconds. What may take longer, and what is
/// not open yet, goes to the backend's threads.
final class LoopStore: Store {
    private var reader: SnapshotReader?
    /// What a read that has not been submitted yet copies its ids into; nil where that is the threads' batch.
    private var own: ReadBatch?

    /// What every cached read touches. Not checked for exclusive access at run time, which a profile of reads shows:
    /// one thread uses it, and nothing that is called during an access comes back to it.
    private struct State {
        /// The plugin's version, and which input it was asked for; it is asked before the first read of each, so that
        /// no read misses what had been written when it was sent.
        var version: UInt64 = 0
        var inputOfVersion = UInt64.max
    }

    @exclusivity(unchecked) private var state = State()
    private var attempts = SearchAttempts()

    private func openReader(for collection: BackendCollection) -> SnapshotReader? {
        // A storage that is down is left to the backend, which refuses what comes.
        guard collection.isOpen, !client.backend.isStorageDown else { return nil }
        if let reader { return reader }
        reader = client.backend.reader(forLoop: client.loopNumber)
        return reader
    }

    override func cacheKey(for collection: BackendCollection) -> CacheKey? {
        guard let cache else { return nil }
        let input = loop.inputCount
        if state.inputOfVersion != input, !followVersion(collection, cache) { return nil }
        state.inputOfVersion = input
        return state.version == 0 ? nil : cache.key(collection)
    }

    /// Notes what somebody else has written.
    ///
    /// - Returns: false where the plugin cannot be asked.
    @inline(never)
    private func followVersion(_ collection: BackendCollection, _ cache: BackendCache) -> Bool {
        guard let reader = openReader(for: collection) else { return false }
        let version = reader.dataVersion()
        if version != state.version { cache.noteForeignWrite() }
        state.version = version
        return true
    }

    override func readNow(
        _ id: Span<UInt8>, in collection: BackendCollection, into visitor: any RecordVisitor
    ) throws(CRUDError) -> Bool {
        guard let reader = openReader(for: collection) else { return false }
        try reader.read(id, in: collection, into: visitor)
        return true
    }

    override func searchNow(_ task: SearchTask, for completion: any RequestCompletion) -> Bool {
        guard attempts.mayMakeOne, let reader = openReader(for: task.collection) else { return false }
        let attempt = task.executeNow(with: reader, client.backend.failures)
        attempts.note(attempt)
        guard attempt == .done else { return false }
        task.append(completion, 0..<1)
        task.complete()
        return true
    }

    override func pendingReads(for collection: BackendCollection) -> ReadBatch {
        // What goes to the threads in this iteration must not be overtaken.
        guard !hasPendingReadsByID, openReader(for: collection) != nil else {
            own = nil
            return super.pendingReads(for: collection)
        }
        let batch = ReadBatch { _ in }
        own = batch
        return batch
    }

    /// How much is read of several records at once, and how many ids are looked up: a millisecond.
    private static let maximumBytes = 512 << 10
    private static let maximumIDs = 128

    override func submit(_ read: Read, for completion: any RequestCompletion) {
        // The collection may have been opened since ``pendingReads(for:)``: what counts is where the ids are.
        guard let batch = own.take(), let reader else {
            return super.submit(read, for: completion)
        }
        // Counting scans an index, which may take a while: never on the loop. What has been found of a read that
        // continues is as much as is read here.
        guard !read.isCount, read.idCount <= Self.maximumIDs, read.found.isEmpty else {
            return passOn(read, of: batch, for: completion)
        }
        var short = read
        // Not more of several, however much room there is: that is a matter of time.
        if read.idCount > 1 { short.maximumBytes = min(read.maximumBytes, Self.maximumBytes) }
        batch.append(short)
        reader.execute([batch])
        if short.maximumBytes < read.maximumBytes, case .partial(let records, _) = batch.result(at: 0) {
            return passOn(read, of: batch, having: records, for: completion)
        }
        batch.append(completion, 0..<1)
        batch.complete()
    }

    /// Leaves a read to the backend's threads.
    ///
    /// - Parameter found: what it has found already; empty: nothing.
    private func passOn(
        _ read: Read, of batch: ReadBatch, having found: [StoredRecord?] = [], for completion: any RequestCompletion
    ) {
        var read = read
        let pending = super.pendingReads(for: read.collection)
        // The buffers are copied before the batch goes.
        read.kind = read.kind.moved { pending.store(unsafe batch.bytes($0).bindMemory(to: UInt8.self).span) }
        read.found = pending.keep(FoundRecords(batch: batch, records: found.isEmpty ? read.found : found))
        super.submit(read, for: completion)
    }

    // MARK: Snapshots

    override var holdsSnapshot: Bool { reader?.holdsSnapshot ?? false }

    override func releaseStaleSnapshot() {
        if let reader, reader.isStale { reader.releaseSnapshot() }
    }

    override func releaseSnapshot() { reader?.releaseSnapshot() }

    /// The backend may be closed from now on, and its readers with it.
    override func quiesce() {
        flush()
        reader?.releaseSnapshot()
        reader = nil
        state = State()
    }
}

/// When a search is tried on the event loop: after each that had to be given up, more of them are left to the threads.
private struct SearchAttempts {
    private var skipped = 0
    private var pause = 0

    private static let longestPause = 64

    mutating func note(_ attempt: SearchTask.Attempt) {
        switch attempt {
        case .done: pause = 0
        case .givenUp: pause = min(Self.longestPause, 2 * pause + 1)
        case .notMade: break
        }
        skipped = 0
    }

    var mayMakeOne: Bool {
        mutating get {
            defer { skipped += 1 }
            return skipped >= pause
        }
    }
}
