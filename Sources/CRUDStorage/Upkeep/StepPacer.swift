import CRUDThreads

/// How many records a step of background work takes, and when the next step may begin: clients come first.
///
/// A step is meant to take no longer than a certain time, since a request that comes during it may have to wait for as
/// long, be it for the thread or for a CPU. A pause as long as the step follows, unless the step was much longer.
struct StepPacer {
    private(set) var records: Int
    private(set) var nextStep = MonotonicTime.now
    private let bounds: ClosedRange<Int>
    private let stepDuration: Duration

    private static let retryPause = Duration.seconds(1)

    /// - Parameters:
    ///   - stepDuration: how long a step is meant to take.
    ///   - records: how many records the first step takes.
    ///   - bounds: how many records a step may take.
    init(stepDuration: Duration, records: Int, within bounds: ClosedRange<Int>) {
        self.stepDuration = stepDuration
        self.records = records
        self.bounds = bounds
    }

    /// Notes the end of a step.
    ///
    /// - Parameters:
    ///   - begin: when it began.
    ///   - count: how many records it took; nil: it was of another kind, whose size does not follow its duration.
    mutating func ended(begun begin: Duration, records count: Int? = nil) {
        let duration = MonotonicTime.now - begin
        nextStep = begin + duration + min(duration, stepDuration * 2)
        guard let count else { return }
        if duration > stepDuration * 2 {
            records = max(bounds.lowerBound, records / 2)
        } else if duration < stepDuration, count == records {
            records = min(bounds.upperBound, records * 2)
        }
    }

    /// Notes that a step has failed.
    mutating func failed() { nextStep = MonotonicTime.now + Self.retryPause }
}
