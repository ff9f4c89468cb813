package import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
import CRUDThreads
import Synchronization

extension Backend {
    /// Counts the records of a collection that is used, and waits for that.
    ///
    /// - Returns: nil if the backend cannot tell, or not in time.
    package func count(_ collection: BackendCollection, within timeout: Duration) -> Int? {
        let counted = OneShot<Bool>()
        let batch = ReadBatch { _ in counted.resolve(true) }
        batch.append(Read(.count(prefix: .empty), in: collection))
        submit(.read(.batch(batch)))
        guard counted.wait(atMost: timeout) != nil else {
            _ = batch.expire()
            return nil
        }
        guard batch.failure == nil, case .count(let count) = batch.result(at: 0) else { return nil }
        return count
    }

    /// Drops a collection in every format, which no event loop reads or writes meanwhile, and waits for that.
    ///
    /// - Parameters:
    ///   - name: of the collection.
    ///   - timeout: how long each step may take.
    /// - Returns: whether it was there.
    /// - Throws: `unsupported`; `unavailable` where nothing was dropped; `outcome_unknown`.
    package func drop(_ name: [UInt8], within timeout: Duration) throws(CRUDError) -> Bool {
        // Searches continue while the backend is drained. The slices behind this find nothing, and those before it
        // are done when it has been drained.
        try perform(within: timeout) { $0.closeCollection(named: name) }
        guard drain(within: timeout) else { throw failures.unavailable }
        let wasThere = Mutex(false)
        try perform(within: timeout) { (storage) throws(CRUDError) in
            let isDropped = try storage.dropCollection(named: name)
            wasThere.withLock { $0 = isDropped }
        }
        kept.remove(named: name)
        return wasThere.withLock { $0 }
    }

    /// Makes a call on the writer's thread, and waits for that.
    func perform(
        within timeout: Duration, _ body: @escaping @Sendable (OpenStorage) throws(CRUDError) -> Void
    ) throws(CRUDError) {
        let returned = OneShot<Bool>()
        try submit(.call(StorageCall(body) { _ in returned.resolve(true) }), returned, within: timeout)
    }

    /// Reads on a thread that reads, and waits for that.
    func read(
        within timeout: Duration, _ body: @escaping @Sendable (SnapshotReader) throws(CRUDError) -> Void
    ) throws(CRUDError) {
        let returned = OneShot<Bool>()
        try submit(.read(.call(ReadCall(body) { _ in returned.resolve(true) })), returned, within: timeout)
    }

    private func submit(_ work: BackendWork, _ returned: OneShot<Bool>, within timeout: Duration) throws(CRUDError) {
        let call = work.item
        submit(work)
        guard returned.wait(atMost: timeout) != nil else {
            throw call.expire() ? failures.unavailable : CRUDError(.outcomeUnknown, "backend \(name) takes long")
        }
        if let failure = call.failure { throw failure }
    }

    /// Waits until every batch of reads or mutations that has been submitted so far has been executed and delivered;
    /// searches, bulk deletes and builds of indexes continue.
    ///
    /// - Returns: false if that takes longer than `timeout`.
    package func drain(within timeout: Duration) -> Bool {
        let deadline = ContinuousClock.now + timeout
        // Batches that hold nothing ask the plugin nothing: they mark a place in its queues. Reads come second, since
        // the writer may pass some on.
        let writes = OneShot<Bool>()
        let mark = MutationBatch { _ in writes.resolve(true) }
        submitToWriter(.write(mark))
        guard writes.wait(atMost: timeout) != nil else {
            _ = mark.expire()
            return false
        }
        let reads = readQueues.map { queue in
            let passed = OneShot<Bool>()
            let mark = ReadBatch { _ in passed.resolve(true) }
            if !queue.append(.batch(mark)) { refuse(mark) }
            return (mark, passed)
        }
        for (mark, passed) in reads where passed.wait(atMost: deadline - .now) == nil {
            _ = mark.expire()
            return false
        }
        return true
    }
}
