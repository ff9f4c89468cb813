import CRUDPluginKit

/// Tells the host every few milliseconds that a call advances, and asks it whether anybody still waits.
struct Heartbeat {
    private static let interval = Duration.milliseconds(2)

    private let call: CallContext
    private let host: Host
    private let stepsPerReading: UInt64
    private var steps: UInt64 = 0
    private var lastBeat = ContinuousClock.now

    /// - Parameter stepsPerReading: how many steps are taken before the clock is read.
    init(_ call: CallContext, _ host: Host, stepsPerReading: UInt64 = 64) {
        self.call = call
        self.host = host
        self.stepsPerReading = stepsPerReading
    }

    /// The call has come one file further.
    ///
    /// - Throws: ``StorageFailure/interrupted`` if nobody waits any more.
    mutating func step() throws(StorageFailure) {
        if advance(), call.isInterrupted { throw .interrupted }
    }

    /// The same of a call that is not to be interrupted. Returns whether the host was told.
    @discardableResult
    mutating func advance() -> Bool {
        steps += 1
        guard steps.isMultiple(of: stepsPerReading) else { return false }
        let now = ContinuousClock.now
        guard now - lastBeat >= Self.interval else { return false }
        lastBeat = now
        host.progress(steps)
        return true
    }
}
