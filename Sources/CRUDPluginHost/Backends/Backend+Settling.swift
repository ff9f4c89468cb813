extension Backend {
    /// Waits until every batch of mutations that has been handed over so far was carried out and delivered.
    ///
    /// - Returns: false if that takes longer than `patience`.
    package func settle(within patience: Duration) -> Bool {
        let settled = Handover<Bool>()
        // A batch without mutations asks the plugin nothing: it is a place in the queue.
        let mark = MutationBatch { _ in settled.give(true) }
        submit(mark)
        if settled.wait(atMost: patience) != nil { return true }
        _ = mark.expire()
        return false
    }
}
