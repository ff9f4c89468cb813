import CRUDModel

/// The pauses between attempts that others have been quicker than.
struct ConflictPauses {
    private var attempts = 0

    /// Waits for a random time that grows with the number of failed attempts, but not past the deadline.
    ///
    /// - Parameter subject: what others have changed, as in "the record".
    /// - Throws: `timed_out` if the deadline comes first, `CancellationError`.
    nonisolated(nonsending) mutating func wait(_ subject: String) async throws {
        attempts += 1
        let longest = Duration.milliseconds(4 << min(attempts, 7))
        let end = ContinuousClock.now + longest * Double.random(in: 0...1)
        if let deadline = CRUDClient.deadline, deadline < end {
            throw CRUDError(
                .timedOut, "others changed \(subject) until the deadline, \(attempts) times",
                cause: DeadlineExceeded())
        }
        try await Task.sleep(until: end, clock: .continuous)
    }
}

/// A write whose conditions fail if it has been applied already: it depends on the revision of a record that it
/// changes. So it can be sent again while its outcome is unknown, and has taken effect once when it succeeds.
enum ConditionalWrite {
    /// Sends the write, again if its outcome is unknown.
    ///
    /// - Parameter send: sends it, always with the same conditions.
    /// - Throws: `outcome_unknown` if that stays so until the deadline, or if a condition has failed meanwhile: either
    ///   the write was applied, or another one was.
    nonisolated(nonsending) static func send<Value>(
        _ send: nonisolated(nonsending) () async throws -> Value
    ) async throws -> Value {
        var unknown: CRUDError?
        var pauses = ConflictPauses()
        while true {
            do {
                return try await send()
            } catch let error as CRUDError where error.code == .outcomeUnknown {
                unknown = unknown ?? error
                if Task.isCancelled || error.cause is ClientClosed { throw unknown ?? error }
            } catch let error as CRUDError where unknown != nil && error.code == .unavailable {
                if error.cause is ClientClosed { throw unknown ?? error }
            } catch {
                throw unknown ?? error
            }
            do { try await pauses.wait("the record") } catch { throw unknown ?? error }
        }
    }
}
