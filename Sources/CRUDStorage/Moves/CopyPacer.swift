/// How many records are copied at once, and how long to pause before the next ones: clients come first.
///
/// A page is as large as one step of about ``stepDuration`` can copy. A step that had to wait in the queue of a backend
/// was not alone there: it is followed by a pause as long as it took, twice as long where it waited for long, so that
/// clients have half of the backend's time or more. On a daemon that has nothing else to do there are no pauses.
struct CopyPacer {
    private(set) var pageRecords = 64

    private static let stepDuration = Duration.milliseconds(16)
    private static let maximumPageRecords = 2048
    private static let shortWait = Duration.milliseconds(1)
    private static let longWait = Duration.milliseconds(10)

    /// Notes a step.
    ///
    /// - Parameters:
    ///   - duration: how long it took in all.
    ///   - wait: how much of that was in queues.
    /// - Returns: the pause after it.
    mutating func copied(in duration: Duration, waiting wait: Duration) -> Duration {
        let work = duration - wait
        if work > Self.stepDuration * 2 {
            halve()
        } else if work < Self.stepDuration {
            pageRecords = min(Self.maximumPageRecords, pageRecords * 2)
        }
        if wait < Self.shortWait { return .zero }
        return wait < Self.longWait ? work : work * 2
    }

    /// Has the next pages be smaller.
    mutating func halve() { pageRecords = max(1, pageRecords / 2) }
}
