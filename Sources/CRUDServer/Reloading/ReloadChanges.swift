/// What a reload has changed.
struct ReloadChanges: Sendable {
    /// A line for each change.
    var lines: [String]
    /// The names of the collections whose move has begun.
    var moves: [String]
}
