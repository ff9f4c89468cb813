import CRUDConfiguration
import CRUDEventLoop
import CRUDStorage

/// What the sessions and handlers of one event loop share: its clock, and the configuration that it serves.
final class LoopState {
    let eventLoop: EventLoop
    private(set) var service: Service
    let meter = RequestMeter()
    /// The service's, at hand.
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing
    // that is called during an access comes back to it.
    @exclusivity(unchecked) private(set) var limits: Configuration.Limits
    /// Whether requests, and whether connections and denials, are logged: what `log.level` was when the loop last took
    /// a configuration, at hand.
    // As above.
    @exclusivity(unchecked) private(set) var logsRequests = false
    private(set) var logsSessions = false
    /// What `log.slow` says; nil: no request is slow.
    // As above.
    @exclusivity(unchecked) private(set) var slow: SlowClock?
    /// Bound how much is logged that peers cause.
    var slowLimit = LogLimiter()
    var denialLimit = LogLimiter()
    var deletionLimit = LogLimiter()
    var refusalLimit = LogLimiter()
    /// Whether the daemon is stopping: no new request is accepted.
    var isDraining = false
    /// Whether it has waited for searches for long enough: none begins any more.
    var hasEndedSearches = false
    /// The requests that wait for changes.
    let followers: Followers
    /// What reads may find beyond the room that they were given, until they are charged for it.
    let readReserve: ByteBudget
    /// How much of that there is in all.
    private var readReserveBytes: Int

    init(_ service: Service, on eventLoop: EventLoop, number: Int) {
        self.eventLoop = eventLoop
        followers = Followers(on: eventLoop, number: number)
        self.service = service
        limits = service.configuration.limits
        readReserveBytes = limits.bufferBytes / service.loopCount / Self.readReservePart
        readReserve = ByteBudget(bytes: readReserveBytes)
    }

    /// As how large a part of what sessions may hold.
    private static let readReservePart = 8

    /// Follows another configuration.
    func serve(_ service: Service) {
        self.service = service
        limits = service.configuration.limits
        let former = readReserveBytes
        readReserveBytes = bufferBytes / Self.readReservePart
        readReserve.giveBack(readReserveBytes - former)
        logsRequests = service.configuration.logLevel == .trace
        logsSessions = logsRequests || service.configuration.logLevel == .debug
        slow = SlowClock(service.configuration.slowRequest)
    }

    /// The time of this iteration.
    var now: Duration { eventLoop.now }

    /// The same in nanoseconds.
    var nowNanoseconds: Int64 { eventLoop.nowNanoseconds }

    /// When a request that comes in now has waited long enough.
    var deadline: Duration { now + limits.requestTimeout }

    /// What the sessions of this loop may hold together.
    var bufferBytes: Int { limits.bufferBytes / service.loopCount }
}
