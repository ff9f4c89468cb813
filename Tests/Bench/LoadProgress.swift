import CRUDHistogram

/// The progress of a run: the requests that may still be sent, and the measurements.
struct LoadProgress {
    enum Phase {
        case warming, measuring, draining
    }

    var phase = Phase.warming
    /// The time when the clock was last read, in nanoseconds.
    var now: UInt64 = MonotonicClock.now()
    var records: RecordSequence
    /// Replies within the measured time.
    private(set) var measured = 0
    private(set) var histogram = LogLinearHistogram()
    private(set) var replies = 0
    private(set) var lastReplyAt: UInt64 = 0
    /// Failures within the measured time, and the longest time without a success, in nanoseconds.
    private(set) var failures: [ReplyFormat.FailureCode: Int] = [:]
    private(set) var longestPause: UInt64 = 0
    private var lastSuccessAt: UInt64 = 0
    /// Requests that may still be sent; nil: any number.
    private var remaining: Int?
    private let checksEveryValue: Bool
    /// Whether requests are sent at a fixed rate, not in response to replies.
    let isPaced: Bool

    init(_ workload: Workload, requests: Int?, isPaced: Bool) {
        records = RecordSequence(workload)
        remaining = requests
        checksEveryValue = workload.checksEveryValue
        self.isPaced = isPaced
        lastReplyAt = now
    }

    /// Counts a request; returns false if no further one may be sent.
    mutating func takeRequest() -> Bool {
        guard phase != .draining else { return false }
        guard let remaining else { return true }
        guard remaining > 0 else { return false }
        self.remaining = remaining - 1
        return true
    }

    var isExhausted: Bool { remaining == 0 }

    mutating func record(sentAt: UInt64, failure: ReplyFormat.FailureCode?) {
        replies += 1
        lastReplyAt = now
        if failure == nil {
            if phase == .measuring, lastSuccessAt > 0 { longestPause = max(longestPause, now - lastSuccessAt) }
            lastSuccessAt = now
        }
        guard phase == .measuring else { return }
        if let failure { failures[failure, default: 0] += 1 }
        measured += 1
        histogram.add(now - sentAt)
    }

    /// Ends the measured time. A time without a success that has not ended yet counts up to now.
    mutating func finishMeasuring(begunAt: UInt64) {
        longestPause = max(longestPause, now - max(lastSuccessAt, begunAt))
        phase = .draining
    }

    /// Whether the value of the last reply is checked: each of the first thousand, then one in 256.
    var isSample: Bool {
        replies <= 1000 || replies & 255 == 0 || checksEveryValue
    }
}
