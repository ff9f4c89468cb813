/// How fast a job is, and how long it will take, judged by its last seconds.
struct ProgressPace {
    private struct Sample {
        var time: ContinuousClock.Instant
        var done: Int
        var fraction: Double?
    }

    private static let window = Duration.seconds(10)
    private static let shortest = Duration.milliseconds(100)
    /// More is not shown.
    private static let longestSeconds = 360_000.0

    private var phase = ""
    private var samples: [Sample] = []

    /// Takes note of how far the job is at `time`; a new phase starts over.
    mutating func note(_ line: ProgressLine, at time: ContinuousClock.Instant) {
        if phase != line.phase || line.done < samples.last?.done ?? 0 { samples.removeAll() }
        phase = line.phase
        let expired = samples.dropLast().prefix { time - $0.time > Self.window }.count
        samples.removeFirst(expired)
        samples.append(Sample(time: time, done: line.done, fraction: line.fraction))
    }

    /// Nil until there are two samples that are far enough apart.
    var unitsPerSecond: Double? {
        guard let (first, last, seconds) = ends else { return nil }
        return (Double(last.done) - Double(first.done)) / seconds
    }

    /// Nil if it is not known, and at the end.
    var secondsLeft: Double? {
        guard let (first, last, seconds) = ends, let before = first.fraction, let now = last.fraction, now > before,
            now < 1
        else { return nil }
        let left = (1 - now) / (now - before) * seconds
        return left < Self.longestSeconds ? left : nil
    }

    private var ends: (first: Sample, last: Sample, seconds: Double)? {
        guard let first = samples.first, let last = samples.last, last.time - first.time >= Self.shortest else {
            return nil
        }
        return (first, last, (last.time - first.time) / .seconds(1))
    }
}
