/// What a line of a ``ProgressDisplay`` shows: how far a job has come.
struct ProgressLine {
    /// Such as the name of the collection.
    var name: String
    var phase: String
    /// Records, or bytes, that are done.
    var done: Int
    /// The unit of ``done``.
    var unit: String
    /// Nil if it is not known.
    var total: Int?
    /// The part that is done, from 0 to 1; nil if it is not known.
    var fraction: Double?

    init(name: String, phase: String, records: Int, total: Int? = nil, fraction: Double? = nil) {
        self.name = name
        self.phase = phase
        done = records
        unit = "records"
        self.total = total
        self.fraction = fraction ?? total.map { $0 > 0 ? min(1, max(0, Double(records) / Double($0))) : 1 }
    }

    init(name: String, phase: String, mebibytes: Int) {
        self.name = name
        self.phase = phase
        done = mebibytes
        unit = "MiB"
    }

    init(name: String, phase: String, bytes: Int, of total: Int?) {
        self.init(name: name, phase: phase, mebibytes: bytes >> 20)
        self.total = total.map { $0 >> 20 }
        fraction = total.map { $0 > 0 ? min(1, max(0, Double(bytes) / Double($0))) : 1 }
    }

    private static let gap = "  "
    private static let widestBar = 30
    private static let narrowestBar = 6
    private static let narrowestName = 8

    /// The line, no wider than `width` columns: what is too much for it is left out, first the bar, then the end of the
    /// name.
    func text(width: Int, pace: ProgressPace) -> String {
        var numbers: [String] = []
        if let fraction {
            let percent = String(Int(fraction * 100))
            numbers.append(String(repeating: " ", count: 3 - percent.count) + percent + "%")
        }
        numbers.append("\(done)\(total.map { "/\($0)" } ?? "") \(unit)")
        if let rate = pace.unitsPerSecond { numbers.append("\(Int(saturating: rate))/s") }
        if let seconds = pace.secondsLeft { numbers.append("\(Self.clock(seconds)) left") }

        let label = "\(name.withVisibleControls)\(Self.gap)\(phase.withVisibleControls)"
        let right = numbers.joined(separator: Self.gap)
        let free = width - label.displayWidth - right.displayWidth - 2 * Self.gap.count
        guard let fraction, free >= Self.narrowestBar else {
            let space = max(Self.narrowestName, width - right.displayWidth - Self.gap.count)
            return (label.cut(to: space) + Self.gap + right).cut(to: width)
        }
        let cells = min(free, Self.widestBar) - 2
        let full = Int(fraction * Double(cells))
        let bar = "[" + String(repeating: "#", count: full) + String(repeating: ".", count: cells - full) + "]"
        return [label, bar, right].joined(separator: Self.gap)
    }

    /// `1:02:03`, or `2:03`.
    private static func clock(_ seconds: Double) -> String {
        let seconds = Int(seconds.rounded(.up))
        func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
        return (hours > 0 ? "\(hours):\(padded(minutes))" : "\(minutes)") + ":\(padded(seconds % 60))"
    }
}
