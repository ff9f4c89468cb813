/// The thresholds by which searches are planned and cut into slices.
package struct SearchLimits: Sendable {
    var now: @Sendable () -> ContinuousClock.Instant = { .now }
    /// The clock is read once in so many records.
    var recordsPerReading = 32
    /// How long a slice lasts.
    var slice = Duration.milliseconds(5)
    /// How long a search may take that needs one snapshot.
    var snapshot = Duration.milliseconds(100)
    /// Up to so many records are sorted, which takes about ten milliseconds, rather than scanned in their order.
    var few = 10_000
    /// Up to so many records are looked up by key, rather than all records scanned.
    var many = 50_000
    /// How long the records in a range of keys may be counted before they are taken to be too many.
    var counting = Duration.milliseconds(50)
    /// How many ranges of keys are looked at to plan for an index.
    var planning = FilterRanges.maximumSteps
    /// An index serves only where no more records than these have no key in it.
    var maximumUnkeyed = 10_000
    /// When more records than these tie in a reverse scan, the others are scanned in their order.
    var maximumTies = 256
    /// Where it decides about records for which more than ``longWork`` is to be done.
    var longRecords = LongRecords.inPlace
    /// In bytes that are looked at.
    var longWork = 512 << 10
    /// How many bytes of long records are kept in one slice, but for the last record.
    var maximumLongBytes = 4 << 20
    /// What the search shares with others; nil: it holds what it needs.
    var memory: SearchMemory?

    package init(longRecords: LongRecords = .inPlace, memory: SearchMemory? = nil) {
        self.longRecords = longRecords
        self.memory = memory
    }

    /// Of a search on an event loop, which is given up where these do not suffice.
    static let quick: SearchLimits = {
        var limits = SearchLimits()
        limits.recordsPerReading = 1
        limits.slice = .microseconds(200)
        limits.snapshot = .microseconds(200)
        limits.maximumUnkeyed = 16
        limits.planning = 1 << 10
        limits.longRecords = .none
        return limits
    }()
}
