import CRUDJSON

/// What a reload has changed.
struct ReloadChanges: Sendable {
    /// A line for each change.
    var lines: [String]
    /// The names of the collections whose move has begun.
    var moves: [String]

    /// The result of `daemon.reload`.
    var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { result in
            result.member("changes", strings: lines)
            result.member("moves", strings: moves)
        }
        return writer.bytes
    }
}
