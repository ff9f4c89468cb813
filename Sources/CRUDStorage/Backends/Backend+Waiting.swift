import CRUDPluginHost
import CRUDThreads

extension Backend {
    /// Counts the records of a collection, and waits for that.
    ///
    /// - Returns: nil if the backend cannot tell, or not in time.
    package func count(_ collection: BackendCollection, within timeout: Duration) -> Int? {
        let counted = OneShot<Bool>()
        let batch = ReadBatch { _ in counted.resolve(true) }
        batch.append(Read(.count(prefix: .empty), in: collection))
        submit(batch)
        guard counted.wait(atMost: timeout) != nil else {
            _ = batch.expire()
            return nil
        }
        guard batch.failure == nil, case .count(let count) = batch.result(at: 0) else { return nil }
        return count
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
        submitToWriter(mark)
        guard writes.wait(atMost: timeout) != nil else {
            _ = mark.expire()
            return false
        }
        let reads = readQueues.map { queue in
            let passed = OneShot<Bool>()
            let mark = ReadBatch { _ in passed.resolve(true) }
            if !queue.append(mark) { refuse(mark) }
            return (mark, passed)
        }
        for (mark, passed) in reads where passed.wait(atMost: deadline - .now) == nil {
            _ = mark.expire()
            return false
        }
        return true
    }
}
