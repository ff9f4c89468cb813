/// The work of evaluating an item, counted in bytes that are looked at, and whether it is to stop.
///
/// One item can take seconds: a filter may have hundreds of patterns for a text of some megabytes. A client that waits
/// for that may go, so that it is asked now and then whether to stop. An evaluation that is stopped has no result.
package struct Work {
    /// How much has been done so far.
    package private(set) var bytes = 0
    /// Whether the evaluation has been stopped.
    package private(set) var isStopped = false
    private var bytesUntilAsking = Self.interval
    private let shouldStop: (() -> Bool)?

    /// How much is done between two questions: some hundred microseconds at the most.
    package static let interval = 64 << 10

    /// - Parameter shouldStop: asked once for each ``interval``; nil: the work is not stopped.
    package init(shouldStop: (() -> Bool)? = nil) {
        self.shouldStop = shouldStop
    }

    /// Counts what is about to be done.
    ///
    /// - Returns: whether to do it.
    @inline(__always)
    package mutating func take(_ bytes: Int) -> Bool {
        self.bytes &+= bytes
        bytesUntilAsking &-= bytes
        if bytesUntilAsking <= 0 { ask() }
        return !isStopped
    }

    @inline(never)
    private mutating func ask() {
        bytesUntilAsking = Self.interval
        if !isStopped, let shouldStop { isStopped = shouldStop() }
    }
}
