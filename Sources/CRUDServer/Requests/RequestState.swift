/// Where a request is that is in flight.
///
/// A request is *executed* by its backend, or by another thread of the daemon. What has been found then is its reply,
/// unless it takes more room than the request was given: it *awaits room* and is executed again. Where it takes long to
/// make the reply of what has been found, another thread *encodes* it, and again where there was no room for that. A
/// `collection.changes` that has nothing to say *follows*: it holds what it was asked for, until there is a change.
/// Once it has been *replied* to, its backend may still be busy with it; when that is done, too, it has *ended*, and
/// its session no longer counts it.
///
/// ``after(_:)`` is the only place that says what may follow what.
enum RequestState: Equatable {
    case executing
    /// It lacks so many bytes.
    case awaitingRoom(bytes: Int)
    case encoding
    case following
    case replied
    case ended

    /// What happens to a request.
    enum Event: Equatable {
        /// What was found takes so many bytes more than there was room for.
        case lacksRoom(bytes: Int)
        /// There is room, and it is executed again.
        case restarts
        /// Another thread makes the reply.
        case encodes
        /// There is nothing to say yet.
        case follows
        /// There may be something to say, which takes so many bytes.
        case wakes(bytes: Int)
        /// It is replied to, or forgotten because its connection is closed.
        case replies
        /// Nothing is done for it any more.
        case ends
    }

    /// The state after an event; nil: the event cannot happen in this state.
    func after(_ event: Event) -> RequestState? {
        switch (self, event) {
        case (.executing, .lacksRoom(let bytes)), (.encoding, .lacksRoom(let bytes)), (.following, .wakes(let bytes)):
            .awaitingRoom(bytes: bytes)
        case (.awaitingRoom, .restarts): .executing
        case (.executing, .encodes): .encoding
        case (.executing, .follows): .following
        case (.executing, .replies), (.awaitingRoom, .replies), (.encoding, .replies), (.following, .replies): .replied
        case (.replied, .ends): .ended
        case (.executing, .restarts), (.executing, .wakes), (.executing, .ends): nil
        case (.awaitingRoom, .lacksRoom), (.awaitingRoom, .encodes), (.awaitingRoom, .follows), (.awaitingRoom, .wakes),
            (.awaitingRoom, .ends):
            nil
        case (.encoding, .restarts), (.encoding, .encodes), (.encoding, .follows),
            (.encoding, .wakes), (.encoding, .ends):
            nil
        case (.following, .lacksRoom), (.following, .restarts), (.following, .encodes), (.following, .follows),
            (.following, .ends):
            nil
        case (.replied, .lacksRoom), (.replied, .restarts), (.replied, .encodes), (.replied, .follows),
            (.replied, .wakes), (.replied, .replies):
            nil
        case (.ended, _): nil
        }
    }
}
