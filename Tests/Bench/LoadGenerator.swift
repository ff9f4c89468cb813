import CRUDHistogram
import Glibc

/// Runs a workload: keeps every slot of every connection in flight until time or requests are used up, then waits for
/// the last replies.
struct LoadGenerator {
    /// When a run ends, and what it observes.
    struct Schedule {
        var warmUpSeconds: Double
        var seconds: Double
        /// Not nil: the number of requests, without warm-up, regardless of time.
        var requests: Int?
        /// Not nil: every connection sends one round of requests in each interval of so many milliseconds.
        var roundMilliseconds: Int?
        /// Whether to record the requests of each second.
        var keepsPace: Bool
        /// A file whose size is read every second.
        var watchedFile: String?
        /// The processes of the server.
        var servers: [Int32]
    }

    struct Outcome {
        var requests: Int
        var seconds: Double
        var latencies: LogLinearHistogram
        /// Processor time of this process over the measured time.
        var clientSeconds: Double
        /// Processor time of the server's processes over the measured time.
        var serverSeconds: Double
        var pace: [Int]
        var watchedBytesMaximum: Int
        var failures: [ReplyFormat.FailureCode: Int]
        /// The longest time without a success.
        var longestPauseSeconds: Double
    }

    /// A run fails if no reply comes for so long.
    private static let timeoutSeconds: UInt64 = 60

    private let schedule: Schedule
    private let connections: [LoadConnection]
    /// So many of them send requests.
    private let active: Int
    private var blocked: [Bool]
    private let poller: Poller
    private var progress: LoadProgress

    private var measuredFrom: UInt64 = 0
    private var processorTimeAtStart: UInt64 = 0
    private var serverTimeAtStart: UInt64 = 0
    private var nextRound: UInt64
    private var nextSecond: UInt64
    private var countedBefore = 0
    private var outcome: Outcome?
    private var pace: [Int] = []
    private var watchedBytesMaximum = 0

    init(_ workload: Workload, _ schedule: Schedule) throws {
        self.schedule = schedule
        connections = try (0..<workload.connections).map { _ in try LoadConnection(workload) }
        active = workload.active
        blocked = Array(repeating: false, count: connections.count)
        poller = try Poller()
        for (number, connection) in connections.enumerated() { try poller.add(connection.socket, number: number) }
        progress = LoadProgress(
            workload, requests: schedule.requests, isPaced: schedule.roundMilliseconds != nil)
        nextRound = progress.now + UInt64(schedule.roundMilliseconds ?? 0) * 1_000_000
        nextSecond = progress.now + 1_000_000_000
    }

    mutating func run() throws -> Outcome {
        let begun = MonotonicClock.now()
        progress.now = begun
        if schedule.requests != nil || schedule.warmUpSeconds == 0 { startMeasuring() }
        try beginRound()
        while true {
            let ready = try poller.wait(milliseconds: waitMilliseconds)
            for index in 0..<ready { try serve(index) }
            progress.now = MonotonicClock.now()
            updatePhase(begun)
            if let outcome, connections.allSatisfy({ $0.inFlight == 0 }) { return outcome }
            if progress.isPaced, progress.now >= nextRound { try beginRound() }
            guard progress.now - progress.lastReplyAt < timeout else {
                throw BenchError("no reply for \(Self.timeoutSeconds) s")
            }
        }
    }

    /// How long no reply may come, in nanoseconds; between rounds of requests none is expected.
    private var timeout: UInt64 {
        Self.timeoutSeconds * 1_000_000_000 + UInt64(schedule.roundMilliseconds ?? 0) * 1_000_000
    }

    private var waitMilliseconds: Int32 {
        let until = progress.isPaced ? min(nextSecond, nextRound) : nextSecond
        return until > progress.now ? Int32((until - progress.now) / 1_000_000 + 1) : 0
    }

    private mutating func serve(_ index: Int) throws {
        let number = poller.number(at: index)
        let connection = connections[number]
        if poller.isReadable(at: index) { try connection.receive(&progress) }
        try flush(connection, number)
    }

    private mutating func beginRound() throws {
        nextRound += UInt64(schedule.roundMilliseconds ?? 0) * 1_000_000
        for (number, connection) in connections.prefix(active).enumerated() where connection.inFlight == 0 {
            connection.begin(&progress)
            try flush(connection, number)
        }
    }

    private mutating func flush(_ connection: LoadConnection, _ number: Int) throws {
        let isBlocked = try !connection.flush()
        guard isBlocked != blocked[number] else { return }
        try poller.awaitWritable(connection.socket, number: number, isBlocked)
        blocked[number] = isBlocked
    }

    private mutating func startMeasuring() {
        progress.phase = .measuring
        measuredFrom = progress.now
        nextSecond = progress.now + 1_000_000_000
        processorTimeAtStart = MonotonicClock.processorTime()
        serverTimeAtStart = MonotonicClock.processorTime(of: schedule.servers)
    }

    /// Changes the phase, and records the requests of every second.
    private mutating func updatePhase(_ begun: UInt64) {
        if progress.now >= nextSecond {
            nextSecond += 1_000_000_000
            recordSecond()
        }
        switch progress.phase {
        case .warming:
            if Double(progress.now - begun) >= schedule.warmUpSeconds * 1e9 { startMeasuring() }
        case .measuring:
            let isOver =
                schedule.requests == nil
                ? Double(progress.now - measuredFrom) >= schedule.seconds * 1e9
                : progress.isExhausted && connections.allSatisfy { $0.inFlight == 0 }
            if isOver { stopMeasuring() }
        case .draining:
            break
        }
    }

    private mutating func recordSecond() {
        watchFile()
        guard schedule.keepsPace, progress.phase == .measuring else { return }
        pace.append(progress.measured - countedBefore)
        countedBefore = progress.measured
    }

    private mutating func watchFile() {
        guard let path = schedule.watchedFile else { return }
        var status = stat()
        if stat(path, &status) == 0 { watchedBytesMaximum = max(watchedBytesMaximum, Int(status.st_size)) }
    }

    private mutating func stopMeasuring() {
        watchFile()
        progress.finishMeasuring(begunAt: measuredFrom)
        outcome = Outcome(
            requests: progress.measured, seconds: Double(progress.now - measuredFrom) / 1e9,
            latencies: progress.histogram,
            clientSeconds: Double(MonotonicClock.processorTime() - processorTimeAtStart) / 1e9,
            serverSeconds: Double(MonotonicClock.processorTime(of: schedule.servers) - serverTimeAtStart) / 1e9,
            pace: pace, watchedBytesMaximum: watchedBytesMaximum, failures: progress.failures,
            longestPauseSeconds: Double(progress.longestPause) / 1e9)
    }
}
