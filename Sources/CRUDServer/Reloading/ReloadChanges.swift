import CRUDJSON

/// What a reload has changed.
struct ReloadChanges: Sendable {
    /// A line for each change.
    var lines: [String]
    /// A line for everybody who may do more than before.
    var gains: [String]
    /// The names of the collections whose move has begun.
    var moves: [[UInt8]]
    /// The names of the collections whose move has been cancelled, or turned to another place.
    var cancelled: [[UInt8]]

    /// The result of `daemon.reload`.
    var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { result in
            result.member("changes", strings: lines + gains)
            result.member("moves", strings: moves.map { String(decoding: $0, as: UTF8.self) })
            result.member("cancelled", strings: cancelled.map { String(decoding: $0, as: UTF8.self) })
        }
        return writer.bytes
    }
}
