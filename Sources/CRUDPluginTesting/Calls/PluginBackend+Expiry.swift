import CRUDPluginABI

extension PluginBackend {
    /// Removes records that have expired, numbered like the host does it.
    ///
    /// - Returns: what was removed, and `next_expiry`.
    package func removeExpired(
        from collection: PluginCollection, limit: Int
    ) throws(CallError) -> (removed: [PluginRecord], nextExpiry: Int64) {
        guard let removeExpired = plugin.table.pointee.remove_expired else {
            throw .violation("the table has no function remove_expired")
        }
        let sink = RecordSink(of: .removals)
        let first = highestSequence + 1
        var nextExpiry: Int64 = -1
        try call { memory, call, failure in
            var request = crudd_expire()
            request.collection = collection.handle
            request.limit = limit
            request.first_sequence = first
            request.emit = RecordSink.emit
            request.context = sink.context
            return removeExpired(handle, call, memory.copy(request), &nextExpiry, failure)
        }
        if let violation = sink.violation { throw .violation("remove_expired \(violation)") }
        if nextExpiry < 0 { throw .violation("remove_expired has not set next_expiry") }
        skipSequences(UInt64(sink.count))
        return ((0..<sink.records.count).compactMap { sink.records[$0] }, nextExpiry)
    }

    /// Forgets removals, and returns what the collection remembers.
    ///
    /// - Parameter limit: at most so many; 0: none.
    package func history(
        of collection: PluginCollection, trimming limit: Int = 0, before: Int64 = 0
    ) throws(CallError) -> PluginHistory {
        guard let trimHistory = plugin.table.pointee.trim_history else {
            throw .violation("the table has no function trim_history")
        }
        var history = crudd_history()
        try call { memory, call, failure in
            var request = crudd_trim()
            request.collection = collection.handle
            request.before = before
            request.limit = limit
            let result = memory.copy(crudd_history())
            let status = trimHistory(handle, call, memory.copy(request), result, failure)
            history = result.pointee
            return status
        }
        return PluginHistory(history)
    }

    /// Has a collection continue the history of another one.
    package func takeHistory(
        of collection: PluginCollection, identity: UInt64, forgotten: UInt64, lastSequence: UInt64,
        removals: [(id: String, sequence: UInt64)] = []
    ) throws(CallError) {
        guard let takeHistory = plugin.table.pointee.take_history else {
            throw .violation("the table has no function take_history")
        }
        try call { memory, call, failure in
            var request = crudd_taken_history()
            request.collection = collection.handle
            request.identity = identity
            request.forgotten = forgotten
            request.last_sequence = lastSequence
            let records = removals.map { removal in
                var record = crudd_record()
                record.id = memory.copy(removal.id)
                record.sequence = removal.sequence
                return record
            }
            request.removals = UnsafePointer(memory.copies(records))
            request.removal_size = memory.size(of: crudd_record.self)
            request.count = records.count
            return takeHistory(handle, call, memory.copy(request), failure)
        }
    }
}
