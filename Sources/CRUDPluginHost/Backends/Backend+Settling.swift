extension Backend {
    /// Waits until every batch that has been handed over so far was carried out and delivered.
    ///
    /// - Returns: false if that takes longer than `patience`.
    package func settle(within patience: Duration) -> Bool {
        let deadline = ContinuousClock.now + patience
        // Batches that hold nothing ask the plugin nothing: they are places in its queues. Reads come second, since the
        // writer may pass some on.
        let writesSettled = Handover<Bool>()
        let writesMark = MutationBatch { _ in writesSettled.give(true) }
        submit(writesMark)
        guard writesSettled.wait(atMost: patience) != nil else {
            _ = writesMark.expire()
            return false
        }
        let readsSettled = Handover<Bool>()
        let readsMark = ReadBatch { _ in readsSettled.give(true) }
        submit(readsMark)
        guard readsSettled.wait(atMost: deadline - .now) != nil else {
            _ = readsMark.expire()
            return false
        }
        return true
    }
}
