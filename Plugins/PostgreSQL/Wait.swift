import CRUDPluginKit

/// How long a connection waits for the server.
struct Wait {
    /// In nanoseconds of ``Clock/monotonic``.
    let limit: Int64
    /// Whose interruption ends it; nil: nobody's.
    private let call: CallContext?
    /// What ends it when the server is lost; nil: nothing.
    private let availability: Availability?
    /// Who is told that the call advances; nil: nobody.
    private let host: Host?

    /// Without a deadline, as the host has its own.
    private static let longest: Int64 = 60_000_000_000
    private static let longestForSchema: Int64 = 24 * 3600 * 1_000_000_000

    init(limit: Int64) {
        self.limit = limit
        call = nil
        availability = nil
        host = nil
    }

    init(milliseconds: Int64) {
        self.init(limit: Clock.monotonic + milliseconds * 1_000_000)
    }

    /// Waits as long as somebody waits for the result of `call`.
    ///
    /// - Parameter isInterruptible: whether it ends when nobody does; else only when the server is lost.
    init(_ call: CallContext, _ availability: Availability, isInterruptible: Bool) {
        limit = min(call.deadline ?? .max, Clock.monotonic + Self.longest)
        self.call = isInterruptible ? call : nil
        self.availability = availability
        host = nil
    }

    /// Waits as long as it takes to make an index, say: until the server is lost.
    init(forSchema availability: Availability, _ host: Host) {
        limit = Clock.monotonic + Self.longestForSchema
        call = nil
        self.availability = availability
        self.host = host
    }

    /// How long to sleep before ``check()``, in milliseconds.
    var slice: Int32 { call == nil ? 20 : 1 }

    /// What is left, for a timeout of the server: whole seconds and then some, so that it rarely changes.
    var timeoutSeconds: Int64 {
        let seconds = max(limit - Clock.monotonic, 0) / 1_000_000_000 + 1
        return [1, 2, 5, 10, 30, 60, 120].first { seconds <= $0 } ?? 24 * 3600
    }

    /// Throws if waiting is over.
    func check() throws(StorageFailure) {
        if call?.isInterrupted == true { throw .interrupted }
        if Clock.monotonic >= limit { throw StorageFailure(.unavailable, "the server does not reply in time") }
        try availability?.check()
        host?.progress(0)
    }
}
