import CRUDModel

extension ConfigurationDecoder {
    private enum LimitsKey: String, CaseIterable {
        case frameBytes = "frame_bytes"
        case itemBytes = "item_bytes"
        case jsonDepth = "json_depth"
        case queryLimit = "query_limit"
        case batch, collections, sessions
        case sessionsPerUser = "sessions_per_user"
        case inflightPerSession = "inflight_per_session"
        case sessionBytes = "session_bytes"
        case bufferBytes = "buffer_bytes"
        case idleTimeout = "idle_timeout"
        case requestTimeout = "request_timeout"
    }

    /// The range of sizes without a range of their own: beyond any machine's memory, but far from overflow.
    static let anySize = 1...1 << 40
    /// Likewise for durations, in microseconds: up to a year.
    static let anyDuration = 1000...365 * 86_400_000_000

    mutating func limits(_ node: YAMLNode?) -> Configuration.Limits {
        var limits = Configuration.Limits()
        guard let node, let fields = fields(node, LimitsKey.self) else { return limits }
        let counts = 1...65_536
        let countBefore = diagnostics.count
        func set(
            _ limit: WritableKeyPath<Configuration.Limits, Int>, _ key: LimitsKey, _ kind: Quantity,
            _ range: ClosedRange<Int>, _ decoder: inout Self
        ) {
            if let value = decoder.quantity(fields[key], kind, in: range) { limits[keyPath: limit] = value }
        }
        set(\.frameBytes, .frameBytes, .size, 64 << 10...1 << 30, &self)
        set(\.itemBytes, .itemBytes, .size, 1...1 << 29, &self)
        if fields[.itemBytes] == nil { limits.itemBytes = min(limits.itemBytes, limits.frameBytes / 2) }
        if diagnostics.count == countBefore, limits.itemBytes > limits.frameBytes / 2 {
            report(
                (fields[.itemBytes] ?? node).position,
                "item_bytes (\(Quantity.size.text(limits.itemBytes))) may be at most half of frame_bytes "
                    + "(\(Quantity.size.text(limits.frameBytes)))")
        }
        set(\.jsonDepth, .jsonDepth, .count, 8...1000, &self)
        set(\.queryLimit, .queryLimit, .count, 1...100_000, &self)
        set(\.batch, .batch, .count, counts, &self)
        set(\.collections, .collections, .count, counts, &self)
        set(\.sessions, .sessions, .count, counts, &self)
        set(\.sessionsPerUser, .sessionsPerUser, .count, counts, &self)
        set(\.inflightPerSession, .inflightPerSession, .count, counts, &self)
        set(\.sessionBytes, .sessionBytes, .size, Self.anySize, &self)
        set(\.bufferBytes, .bufferBytes, .size, Self.anySize, &self)
        if let time = quantity(fields[.idleTimeout], .duration, in: 0...Self.anyDuration.upperBound) {
            limits.idleTimeout = time == 0 ? nil : .microseconds(time)
        }
        if let time = quantity(fields[.requestTimeout], .duration, in: Self.anyDuration) {
            limits.requestTimeout = .microseconds(time)
        }
        return limits
    }
}
