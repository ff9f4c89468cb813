import CRUDPluginKit

// What has expired is removed, numbered and remembered by one statement, in one round trip with its transaction. A call
// that has nothing to remove is one round trip that reads.
extension Writer {
    func removeExpired(_ request: borrowing ExpiryRequest<PostgreSQLCollection>) throws(StorageFailure) -> Int64? {
        let collection = request.collection
        let wait = Wait(request.call, availability, isInterruptible: false)
        let next = try use { (connection) throws(StorageFailure) in
            let wait = wait.on(connection)
            try connection.limitStatements(wait)
            try connection.send(.nextExpiry, collection.scope, Parameters())
            try connection.sync(wait)
            let result = try connection.receive(wait)
            try connection.finish(wait)
            return try result.check("look for what has expired").nextExpiry
        }
        guard let next, next <= request.now, request.limit > 0 else { return next }
        // It is looked at again whether the daemon that removes it is still there.
        guard try hasUpkeep(wait) else { return request.now + Upkeep.pauseMilliseconds }
        let (last, overflows) = request.firstSequence.addingReportingOverflow(UInt64(request.limit - 1))
        if !lease.numbersChanges { try reserve(through: overflows ? .max : last, request.call) }
        var retries = ConflictRetries(until: request.call.deadline)
        while true {
            var removed: [[UInt8]] = []
            var left: Int64?
            guard let error = try attempt(request, wait, &removed, &left) else {
                if !removed.isEmpty { committed(collection) }
                for (index, id) in removed.enumerated() where RecordRules.isValidID(id.span.bytes) {
                    request.emit(index, id: id.span.bytes)
                }
                return left
            }
            guard error.isConflict, retries.pause() else {
                throw error.failure("remove what has expired")
            }
            guard try hasUpkeep(wait) else { return request.now + Upkeep.pauseMilliseconds }
        }
    }

    /// What is wrong where the row of upkeep was to be locked.
    private func checkUpkeep(_ error: ServerError?) -> ServerError? {
        guard error?.state == Lease.lossState else { return error }
        lease.upkeep.lose()
        return .fenceRaised
    }

    /// Whether this daemon does the upkeep.
    func hasUpkeep(_ wait: Wait) throws(StorageFailure) -> Bool {
        try use { (connection) throws(StorageFailure) in try lease.takeUpkeep(connection, wait.on(connection)) }
    }

    /// Removes expired records in one transaction.
    ///
    /// - Parameters:
    ///   - removed: becomes the ids of those that were removed, in the order of their numbers.
    ///   - left: becomes the lowest expiry of those that are left.
    /// - Returns: why the server has undone it.
    private func attempt(
        _ request: borrowing ExpiryRequest<PostgreSQLCollection>, _ wait: Wait, _ removed: inout [[UInt8]],
        _ left: inout Int64?
    ) throws(StorageFailure) -> ServerError? {
        let scope = request.collection.scope
        var progress = Progress.undecided
        do throws(StorageFailure) {
            return try use { (connection) throws(StorageFailure) in
                let wait = wait.on(connection)
                let isRemembered = request.collection.layout.keepsSequences
                var parameters = Parameters()
                parameters.add(request.now)
                parameters.add(Int64(clamping: request.limit))
                if isRemembered { parameters.add(scope.histories == nil ? Int64(clamping: request.firstSequence) : 1) }
                try limitStatements(connection, wait)
                let fence = try begin(connection)
                if isShared { try connection.send(.fence, control, lease.upkeep.fenceParameters) }
                try connection.send(.expire(isRemembered: isRemembered), scope, parameters)
                try connection.send(.nextExpiry, scope, Parameters())
                connection.warning = nil
                try commit(connection, wait, &progress)
                var failure = try receiveBeginning(connection, wait, fence)
                if isShared {
                    let error = try connection.receive(wait).error
                    failure = failure ?? checkUpkeep(error)
                }
                let expired = try connection.receive(wait)
                let next = try connection.receive(wait)
                let committed = try connection.receive(wait)
                try connection.finish(wait)
                failure = failure ?? expired.error ?? next.error
                if failure != nil { progress = .undecided }
                if failure == nil { failure = try check(commit: committed, connection, &progress) }
                if let failure {
                    connection.recover()
                    return failure
                }
                removed = (0..<expired.rowCount).map { Array(expired.bytes($0, 0)) }
                left = next.nextExpiry
                return nil
            }
        } catch {
            // The host looks again at what is there.
            guard progress == .committing else { throw error }
            // No later statement may meet it.
            availability.doubt()
            committed(request.collection)
            throw StorageFailure(.outcomeUnknown, error.message)
        }
    }
}

extension QueryResult {
    /// Of the statement for it; nil: nothing expires.
    fileprivate var nextExpiry: Int64? { rowCount == 0 ? nil : integer(0, 0) }
}
