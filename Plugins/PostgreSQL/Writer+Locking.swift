import CRUDPluginKit

// A write on condition that a record is still what was read succeeds if no other daemon is quicker. Where several
// change one record all the time each fails most of the time, and one that has waited for long has no advantage. So
// records for which the host says that this has happened are locked as they are read, in the transaction that the next
// batch ends. The server grants locks of one record in the order in which they were asked for.
//
// The id is locked, too, before the record: one that is absent stays so. Neither takes a round trip more than reading
// does. Where a lock is not granted in time the record is read without it, as the condition is checked all the same. A
// daemon that is frozen meanwhile does not keep the others waiting: the server ends a transaction in which nothing
// happens (``BlockLimits/idleMilliseconds``).

/// Records that are locked in a transaction that has been begun.
struct Hold {
    let connection: Connection
    var keys: Set<RecordKey>
}

extension Writer {
    /// The most that are locked by one request: as many as results may hold of the longest items.
    private static let maximumLocks = 100

    /// Locks and reads records that are about to be written, until the next batch has been.
    ///
    /// - Returns: for each a row at most; nil: none is locked.
    func lock(_ request: borrowing ReadRequest, of collection: PostgreSQLCollection) -> [QueryResult]? {
        guard 1...Self.maximumLocks ~= request.count else { return nil }
        // In the order of the ids, as all transactions.
        let order = (0..<request.count).map { (position: $0, id: Array(request.id(at: $0))) }
            .sorted { $0.id.lexicographicallyPrecedes($1.id) }.map(\.position)
        do throws(StorageFailure) {
            let connection = if let hold { hold.connection } else { try connected() }
            do throws(StorageFailure) {
                return try lock(order, request, collection, connection)
            } catch {
                hold = nil
                release(connection)
            }
        } catch {
            // Reading finds out the same.
        }
        return nil
    }

    private func lock(
        _ order: [Int], _ request: borrowing ReadRequest, _ collection: PostgreSQLCollection,
        _ connection: Connection
    ) throws(StorageFailure) -> [QueryResult]? {
        let wait = Wait(request.call, availability, isInterruptible: false).on(connection)
        var fence: Int64?
        if hold == nil {
            try limitStatements(connection, wait)
            fence = try begin(connection)
        } else {
            try connection.limitLocks(milliseconds: BlockLimits.furtherLockMilliseconds)
        }
        var idLocks = IDLocks()
        for position in order { idLocks.addExclusive(collection, request.id(at: position)) }
        try connection.send(.lockIDs, control, idLocks.parameters)
        for position in order {
            var parameters = Parameters()
            parameters.add(request.id(at: position))
            try connection.send(.lock(withItem: request.wantsItems), collection.scope, parameters)
        }
        try connection.sync(wait)
        var failure = if let fence { try receiveBeginning(connection, wait, fence) } else { ServerError?.none }
        let locked = try connection.receive(wait).error
        failure = failure ?? locked
        var results: [(position: Int, result: QueryResult)] = []
        for position in order {
            let result = try connection.receive(wait)
            failure = failure ?? result.error
            results.append((position, result))
        }
        try connection.finish(wait)
        // What a server returns about which there is doubt is not used.
        guard failure == nil, availability.isCertain(connection.generation) else {
            hold = nil
            release(connection)
            return nil
        }
        let keys = order.map { RecordKey(collection, request.id(at: $0)) }
        hold = Hold(connection: connection, keys: (hold?.keys ?? []).union(keys))
        return results.sorted { $0.position < $1.position }.map(\.result)
    }

    /// Releases what is locked, if anything is.
    func endHold() {
        if let hold = hold.take() { release(hold.connection) }
    }

    /// Applies a batch in the transaction in which all its records are locked, if there is one; else ends that.
    ///
    /// - Returns: false where nothing was applied.
    func writeHeld(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>
    ) throws(StorageFailure) -> Bool {
        guard let hold = hold.take() else { return false }
        var isHeld = batch.count > 0 && !hold.connection.hasNews()
        for position in 0..<batch.count where isHeld { isHeld = hold.keys.contains(RecordKey(batch[position])) }
        guard isHeld else {
            release(hold.connection)
            return false
        }
        var overtaken: [Int] = []
        if try attempt(batch, 0..<batch.count, &overtaken, in: hold) != nil { return false }
        var retries = ConflictRetries(until: batch.deadline)
        for position in overtaken { writeAgain(batch, position, &retries) }
        return true
    }
}
