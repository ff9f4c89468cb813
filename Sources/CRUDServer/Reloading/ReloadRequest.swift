/// A `daemon.reload` that is under way: what its answer needs.
struct ReloadRequest {
    /// Tells it from the others of its event loop.
    let number: UInt64
    let session: Session
    let target: ReplyTarget
    /// The request's id as it was sent; nil for a notification.
    let id: [UInt8]?
    /// When it has waited long enough, on the loop's clock.
    let deadline: Duration
    /// How many bytes its session is charged for it.
    let heldBytes: Int
}
