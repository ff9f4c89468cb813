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
