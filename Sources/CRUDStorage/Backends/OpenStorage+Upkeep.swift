import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost

// What the host has the plugin do without a request: remove what has expired, and forget removals.

extension OpenStorage {
    /// Removes records that have expired.
    ///
    /// - Returns: how many, and when the next one expires, in milliseconds since 1970-01-01 UTC; 0: none does.
    func removeExpired(
        from collection: OpaquePointer, atMost limit: Int
    ) throws(CRUDError) -> (count: Int, next: Int64) {
        guard let remove = table.pointee.remove_expired else {
            throw CRUDError(.unsupported, "the plugin does not remove what has expired")
        }
        let removals = Removals(from: collection)
        var next: Int64 = 0
        var status = crudd_status(CRUDD_OK)
        funnel.maintain {
            var request = crudd_expire.sized()
            request.collection = collection
            request.limit = limit
            request.first_sequence = lastSequence + 1
            // Alive until the call returns.
            request.context = Unmanaged.passUnretained(removals).toOpaque()
            request.emit = { context, _, record in
                guard let context, let record else { return 0 }
                let removed = crudd_record.read(record)
                // `context` is the list above.
                Unmanaged<Removals>.fromOpaque(context).takeUnretainedValue()
                    .note(removed.id.buffer, sequence: removed.sequence)
                return 0
            }
            status = remove(opened.storage, context.begin(), &request, &next, failure.pointer)
            return removals
        }
        // A call that has failed, or has removed what has no valid id, has used more numbers than it has told.
        lastSequence += UInt64(limit)
        if Int(status) == CRUDD_OUTCOME_UNKNOWN { environment.feeds.becomeUncertain(through: lastSequence) }
        if Int(status) != CRUDD_OK { throw failures.report(failure.take(status: status), during: "remove_expired") }
        return (removals.count, StoredTime.clamped(next))
    }

    /// What the plugin remembers of a collection's removals.
    func readHistory(of collection: OpaquePointer) throws(CRUDError) -> ChangeFeed.History {
        try history(of: collection, before: 0, atMost: 0).history
    }

    /// Forgets removals that were made before a point in time.
    ///
    /// - Parameter moment: milliseconds since 1970-01-01 UTC.
    /// - Returns: how many have been forgotten.
    func trim(
        _ feed: ChangeFeed, of collection: OpaquePointer, before moment: Int64, atMost limit: Int
    ) throws(CRUDError) -> Int {
        feed.beginTrimming()
        var outcome: Result<(history: ChangeFeed.History, trimmed: Int), CRUDError>?
        funnel.maintain {
            outcome = Result { () throws(CRUDError) in
                try history(of: collection, before: moment, atMost: limit)
            }
            return Removals(from: collection)
        }
        do throws(CRUDError) {
            guard let (history, trimmed) = try outcome?.get() else { return 0 }
            feed.endTrimming(history)
            return trimmed
        } catch {
            // Whether it has taken effect shows when the plugin can be asked again.
            if let history = try? readHistory(of: collection) {
                feed.endTrimming(history)
            } else {
                feed.failTrimming()
            }
            throw error
        }
    }

    /// Removals, by the ids of the records.
    typealias NumberedRemovals = [(id: [UInt8], sequence: UInt64)]

    /// Has a collection that gets copies of another one's records continue the history of that one.
    ///
    /// - Parameters:
    ///   - history: of the other one.
    ///   - lastSequence: its storage has not used a higher number.
    ///   - removals: of the other one, to be remembered here too.
    /// - Returns: false where this storage cannot do that, or the collection has no feed.
    func take(
        _ history: ChangeFeed.History, through lastSequence: UInt64, _ removals: NumberedRemovals = [],
        for collection: BackendCollection
    ) throws(CRUDError) -> Bool {
        guard opened.capabilities.contains(.takesHistory), let take = table.pointee.take_history,
            history.identity <= UInt64(Int64.max), let feed = collection.feed, let handle = collection.handle
        else { return false }
        var history = history
        let known = try readHistory(of: handle)
        // Removals that were taken over may be forgotten here before they are there.
        if known.identity == history.identity { history.forgotten = max(history.forgotten, known.forgotten) }
        self.lastSequence = max(self.lastSequence, lastSequence)
        var status = crudd_status(CRUDD_OK)
        feed.beginTrimming()
        funnel.maintain {
            status = removals.withRecords { records in
                var request = crudd_taken_history.sized()
                request.collection = handle
                request.identity = history.identity
                request.forgotten = history.forgotten
                request.last_sequence = lastSequence
                request.removals = records.baseAddress
                request.removal_size = MemoryLayout<crudd_record>.stride
                request.count = records.count
                return take(opened.storage, context.begin(), &request, failure.pointer)
            }
            return Removals(from: handle)
        }
        guard Int(status) == CRUDD_OK else {
            feed.failTrimming()
            throw failures.report(failure.take(status: status), during: "take_history")
        }
        feed.endTrimming(history)
        environment.feeds.advance(to: lastSequence)
        return true
    }

    private func history(
        of collection: OpaquePointer, before moment: Int64, atMost limit: Int
    ) throws(CRUDError) -> (history: ChangeFeed.History, trimmed: Int) {
        guard let trim = table.pointee.trim_history else {
            throw CRUDError(.unsupported, "the plugin does not remember changes")
        }
        var request = crudd_trim.sized()
        request.collection = collection
        request.before = moment
        request.limit = limit
        var history = crudd_history.sized()
        let status = trim(opened.storage, context.begin(), &request, &history, failure.pointer)
        if Int(status) != CRUDD_OK { throw failures.report(failure.take(status: status), during: "trim_history") }
        return (
            ChangeFeed.History(identity: history.identity, forgotten: history.forgotten), Int(clamping: history.trimmed)
        )
    }
}

extension OpenStorage.NumberedRemovals {
    /// Lends them as the plugin gets them.
    fileprivate func withRecords<Result>(_ body: (UnsafeBufferPointer<crudd_record>) -> Result) -> Result {
        var arena = ByteArena()
        let places = map { arena.append($0.id.span) }
        let records = zip(self, places).map { removal, place in
            var record = crudd_record.sized()
            record.id = crudd_bytes(arena.bytes(place))
            record.sequence = removal.sequence
            return record
        }
        return records.withUnsafeBufferPointer(body)
    }
}
