import CRUDModel

/// The keys of `limits`.
enum LimitDefinitions {
    /// Where a limit is kept, and which values are valid.
    typealias Definition = (
        key: LimitsKey, value: any WritableKeyPath<Configuration.Limits, Int> & Sendable, kind: Quantity,
        range: ClosedRange<Int>
    )

    /// The range of sizes without a range of their own: beyond any machine's memory, but far from overflow.
    static let anySize = 1...1 << 40
    /// Likewise for durations, in microseconds: up to a year.
    static let anyDuration = 1000...365 * 86_400_000_000
    /// A child needs some 6 MiB before it has stored anything, and a megabyte for each of its threads.
    static let childMemory = 16 << 20...anySize.upperBound
    /// What one page of a query is given, 256 KiB, in the half that one user may hold.
    private static let leastBufferBytes = 512 << 10
    /// How long a thread may spin: beyond ten milliseconds sleeping costs nothing in comparison.
    static let busyPoll = 0...10_000
    /// Microseconds.
    static let slowRequest = 0...86_400_000_000
    private static let anyCount = 1...65_536

    static let all: [Definition] = [
        (.frameBytes, \.frameBytes, .size, 64 << 10...DefaultLimits.maximumFrameBytes),
        (.itemBytes, \.itemBytes, .size, 1...1 << 29),
        (.jsonDepth, \.jsonDepth, .count, 8...1000), (.queryLimit, \.queryLimit, .count, 1...100_000),
        (.batch, \.batch, .count, anyCount), (.collections, \.collections, .count, anyCount),
        (.sessions, \.sessions, .count, anyCount), (.sessionsPerUser, \.sessionsPerUser, .count, anyCount),
        (.inflightPerSession, \.inflightPerSession, .count, anyCount),
        (.followersPerSession, \.followersPerSession, .count, anyCount),
        (.sessionBytes, \.sessionBytes, .size, anySize),
        (.bufferBytes, \.bufferBytes, .size, leastBufferBytes...anySize.upperBound),
        (.idleTimeout, \.idleMicroseconds, .duration, 0...anyDuration.upperBound),
        (.requestTimeout, \.requestMicroseconds, .duration, anyDuration),
    ]
}

enum LimitsKey: String, CaseIterable {
    case frameBytes = "frame_bytes"
    case itemBytes = "item_bytes"
    case jsonDepth = "json_depth"
    case queryLimit = "query_limit"
    case batch, collections, sessions
    case sessionsPerUser = "sessions_per_user"
    case inflightPerSession = "inflight_per_session"
    case followersPerSession = "followers_per_session"
    case sessionBytes = "session_bytes"
    case bufferBytes = "buffer_bytes"
    case idleTimeout = "idle_timeout"
    case requestTimeout = "request_timeout"
}

extension ConfigurationDecoder {
    mutating func limits(_ node: YAMLNode?) -> Configuration.Limits {
        var limits = Configuration.Limits()
        guard let node, let fields = fields(node, LimitsKey.self) else { return limits }
        var areSizesSound = true
        for limit in LimitDefinitions.all {
            if let value = quantity(fields[limit.key], limit.kind, in: limit.range) {
                limits[keyPath: limit.value] = value
            } else if fields[limit.key] != nil, [.frameBytes, .itemBytes].contains(limit.key) {
                areSizesSound = false
            }
        }
        if let idle = limits.idleTimeout, idle < .milliseconds(1), let node = fields[.idleTimeout] {
            report(node, expected: "0us or at least 1ms")
        }
        if fields[.itemBytes] == nil { limits.itemBytes = min(limits.itemBytes, limits.frameBytes / 2) }
        if areSizesSound, limits.itemBytes > limits.frameBytes / 2 {
            report(
                (fields[.itemBytes] ?? node).position,
                "item_bytes (\(Quantity.size.text(limits.itemBytes))) may be at most half of frame_bytes "
                    + "(\(Quantity.size.text(limits.frameBytes)))")
        }
        return limits
    }
}

extension Configuration.Limits {
    fileprivate var idleMicroseconds: Int {
        get { idleTimeout?.microseconds ?? 0 }
        set { idleTimeout = newValue == 0 ? nil : .microseconds(newValue) }
    }

    fileprivate var requestMicroseconds: Int {
        get { requestTimeout.microseconds }
        set { requestTimeout = .microseconds(newValue) }
    }
}

extension Duration {
    var microseconds: Int {
        let (seconds, attoseconds) = components
        return Int(seconds) * 1_000_000 + Int(attoseconds / 1_000_000_000_000)
    }
}
