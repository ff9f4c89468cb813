/// What goes wrong with calls of an ``InMemoryDatabase``, so that an application's tests see it.
public enum Fault: Sendable {
    /// The daemon, or the backend, is away: the call throws `CRUDError.Code.unavailable`, and nothing is applied.
    case unavailable
    /// The connection is lost before the daemon has read the request: a write throws
    /// `CRUDError.Code.outcomeUnknown`, and is not applied. A client sends reads again, so that they do not notice.
    case lostRequest
    /// The connection is lost before the reply has come: a write is applied, and throws
    /// `CRUDError.Code.outcomeUnknown`. A client sends reads again, so that they do not notice.
    case lostReply
    /// The call takes so much longer, by the database's clock. If its deadline comes first a read throws
    /// `CRUDError.Code.timedOut`, and a write, which is not applied, `CRUDError.Code.outcomeUnknown`.
    case slow(Duration)
}

extension InMemoryDatabase {
    /// Makes the next calls fail.
    ///
    /// ```swift
    /// let database = InMemoryDatabase()
    /// database.inject(.lostReply, in: "orders")                   // the next write of an order
    /// database.inject(.unavailable, times: nil)                   // everything, until removeFaults()
    /// ```
    ///
    /// One call has at most one of the faults that end it, the earliest that concerns it, and one that delays it.
    ///
    /// - Parameters:
    ///   - fault: what happens to them.
    ///   - times: to how many calls; nil: to all until ``removeFaults()``.
    ///   - collection: only to calls of this collection; nil: of any. A transaction or batch is a call of the
    ///     collection whose repository executes it.
    public func inject(_ fault: Fault, times: Int? = 1, in collection: String? = nil) {
        faults.add(fault, times: times, in: collection)
    }

    /// Calls succeed again.
    public func removeFaults() {
        faults.removeAll()
    }
}
