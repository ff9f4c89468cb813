import CRUDPluginKit

/// How long a connection waits for the server.
struct Wait {
    /// In nanoseconds of ``Clock/monotonic``.
    let limit: Int64
    /// The call whose interruption ends it; nil: none.
    private var call: CallContext?
    /// What ends it when the server is lost; nil: nothing.
    private var availability: Availability?
    /// Of the server that is waited for; nil: of any.
    var generation: UInt64?
    /// The host that is told that the call advances; nil: none.
    private var host: Host?
    /// Whether the caller has given up.
    private var isOver: () -> Bool = { false }

    /// Without a deadline, as the host has its own.
    private static let longest: Int64 = 60_000_000_000
    private static let longestForSchema: Int64 = 24 * 3600 * 1_000_000_000

    init(limit: Int64) {
        self.limit = limit
    }

    init(milliseconds: Int64) {
        self.init(limit: Clock.monotonic + milliseconds * 1_000_000)
    }

    /// Waits as long as the host waits for the result of `call`.
    ///
    /// - Parameter isInterruptible: whether it ends when the host does not; else only when the server is lost.
    init(_ call: CallContext, _ availability: Availability, isInterruptible: Bool) {
        self.init(limit: min(call.deadline ?? .max, Clock.monotonic + Self.longest))
        self.call = isInterruptible ? call : nil
        self.availability = availability
    }

    /// Waits as long as it takes to make an index, say: until the server is lost.
    init(forSchema availability: Availability, _ host: Host) {
        self.init(limit: Clock.monotonic + Self.longestForSchema)
        self.availability = availability
        self.host = host
    }

    /// Waits without a limit, until the server is lost.
    ///
    /// - Parameter isOver: whether the caller has given up.
    init(_ availability: Availability, until isOver: @escaping () -> Bool) {
        self.init(limit: Clock.monotonic + Self.longestForSchema)
        self.availability = availability
        self.isOver = isOver
    }

    /// How long to sleep before ``check()``, in milliseconds.
    var slice: Int32 { call == nil ? 20 : 1 }

    /// What is left, for a timeout of the server: whole seconds and then some, so that it rarely changes.
    var timeoutMilliseconds: Int64 {
        let seconds = max(limit - Clock.monotonic, 0) / 1_000_000_000 + 1
        return 1000 * ([1, 2, 5, 10, 30, 60, 120].first { seconds <= $0 } ?? 24 * 3600)
    }

    /// Throws if waiting is over.
    func check() throws(StorageFailure) {
        if call?.isInterrupted == true || isOver() { throw .interrupted }
        if Clock.monotonic >= limit { throw StorageFailure(.unavailable, "the server does not reply in time") }
        try availability?.check(generation)
        host?.progress(0)
    }
}
