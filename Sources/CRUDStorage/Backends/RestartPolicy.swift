/// When a backend that was lost, or could not be opened, is tried again.
///
/// A child that served somebody before it died is started again at once, and so is the first that did not; further ones
/// wait, 100 ms first and twice as long each time. Ten failures in a row open the circuit: from then on one attempt is
/// made every 30 s. A child that serves closes it. A storage that is not available now, such as a server that another
/// daemon uses, is asked for every second at least, however often it was not. A plugin inside the daemon, which cannot
/// die alone, begins with the first pause.
struct RestartPolicy {
    private let firstPause: Duration
    /// How many have failed in a row.
    private(set) var failures = 0

    private static let shortestPause = Duration.milliseconds(100)
    private static let longestPause = Duration.seconds(30)
    private static let longestPauseForStorage = Duration.seconds(1)
    private static let failuresThatOpen = 10

    /// - Parameter isChild: whether it is a process of its own that fails.
    init(isChild: Bool) {
        firstPause = isChild ? .zero : Self.shortestPause
    }

    /// Whether so many have failed that only one is tried from time to time.
    var isCircuitOpen: Bool { failures >= Self.failuresThatOpen }

    /// Notes a failure.
    ///
    /// - Parameter hasServed: whether what failed had executed a request before.
    /// - Returns: how long to wait before the next attempt.
    mutating func failed(hasServed: Bool) -> Duration {
        failures = hasServed ? 1 : failures + 1
        if failures == 1 { return firstPause }
        if isCircuitOpen { return Self.longestPause }
        let doublings = failures - (firstPause == .zero ? 2 : 1)
        return min(Self.shortestPause * (1 << doublings), Self.longestPause)
    }

    /// Notes that the plugin has said that its storage is not available now.
    ///
    /// - Returns: how long to wait before the next attempt.
    mutating func wasUnavailable() -> Duration {
        failures = min(failures + 1, Self.failuresThatOpen - 1)
        return min(Self.shortestPause * (1 << (failures - 1)), Self.longestPauseForStorage)
    }
}
