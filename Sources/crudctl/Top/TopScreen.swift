/// The screen of `crudctl top` as lines of text, for a terminal of any size: nothing here knows of a terminal.
///
/// The first lines are always there, as far as the screen is high: who and since when, then the rates of the last
/// minute. The rest of the height is divided between tables, each of which shows its first rows. Where the screen is
/// wide enough the tables stand in two columns.
struct TopScreen {
    /// A piece of a line.
    struct Span: Equatable {
        enum Style: Equatable {
            case plain, heading, alarm
        }

        var text: String
        var style = Style.plain
    }

    typealias Line = [Span]

    let state: TopState
    let width: Int
    let height: Int

    /// From this width on tables stand in two columns.
    private static let wide = 120
    private static let gap = "  "

    /// At most ``height`` lines, each of at most ``width`` columns.
    var lines: [Line] {
        var lines = [title]
        if let problem = state.problem { lines.append([Span(text: problem.withVisibleControls, style: .alarm)]) }
        lines += graphs
        if height > lines.count + 2 { lines.append([]) }
        let rest = max(0, height - lines.count)
        if width >= Self.wide {
            let column = (width - 3) / 2
            let left = Self.fit([methods], into: rest, width: column)
            let right = Self.fit([collections, backends, moves], into: rest, width: column)
            lines += Self.joined(left, right, width: column)
        } else {
            lines += Self.fit([methods, collections, backends, moves], into: rest, width: width)
        }
        return lines.prefix(height).map { Self.cut($0, to: width) }
    }

    // MARK: The first lines

    private var title: Line {
        let parts = [
            "crudd \(state.version.withVisibleControls)", "up \(Self.duration(state.uptime))",
            state.sessions == 1 ? "1 session" : "\(Self.count(state.sessions)) sessions",
            "\(Self.bytes(state.residentBytes)) memory", state.cpu.map { "\(Self.percent($0, rounded: true)) CPU" },
            "\(Self.bytes(state.heldBytes)) in buffers", "q quits",
        ]
        return [Span(text: parts.compactMap(\.self).joined(separator: " · "), style: .heading)]
    }

    private var graphs: [Line] {
        let rows: [(String, [Double?], Double?, String)] = [
            ("requests", state.requests, nil, state.requests.last?.map { "\(Self.count($0))/s" } ?? "-"),
            ("errors", state.errors, nil, state.errors.last?.map { "\(Self.count($0))/s" } ?? "-"),
            ("cache hits", state.hitRatios, 1, state.hitRatio.map { Self.percent($0) } ?? "-"),
        ]
        let available = width - 2 * Self.gap.count - 10 - 8
        return rows.prefix(max(0, height - 2)).map { name, values, maximum, latest in
            let graph = Self.sparkline(values, width: min(available, TopState.historyLength), maximum: maximum)
            let parts = [Self.left(name, 10), Self.right(latest, 8), graph]
            let text = parts.filter { !$0.isEmpty }.joined(separator: Self.gap)
            return [Span(text: text)]
        }
    }

    /// The latest values as bars of an eighth to eight eighths of a line, right-aligned; a blank where there is none.
    static func sparkline(_ values: [Double?], width: Int, maximum: Double? = nil) -> String {
        guard width > 0 else { return "" }
        let shown = values.suffix(width)
        let maximum = maximum ?? shown.compactMap(\.self).max() ?? 0
        let bars = Array("▁▂▃▄▅▆▇█")
        let graph = shown.map { value -> Character in
            guard let value else { return " " }
            guard maximum > 0 else { return bars[0] }
            return bars[min(bars.count - 1, max(0, Int(saturating: value / maximum * Double(bars.count))))]
        }
        return String(repeating: " ", count: width - shown.count) + String(graph)
    }

    // MARK: Tables

    private struct Table {
        /// The first column is as wide as there is room, the others as wide as said; those on the right are left out
        /// first.
        var columns: [(name: String, width: Int)]
        var rows: [(cells: [String], isAlarming: Bool)]
    }

    private var methods: Table {
        Table(
            columns: [("METHOD", 0), ("REQ/S", 8), ("P99", 8), ("P50", 8), ("ERR/S", 8)],
            rows: state.methods.filter { $0.requests > 0 }.map {
                (
                    [
                        $0.name, Self.count($0.requests), Self.time($0.slowest), Self.time($0.median),
                        Self.count($0.errors),
                    ],
                    false
                )
            })
    }

    private var collections: Table {
        Table(
            columns: [("COLLECTION", 0), ("REQ/S", 8)],
            rows: state.collections.filter { $0.requests > 0 }.map { ([$0.name, Self.count($0.requests)], false) })
    }

    private var backends: Table {
        Table(
            columns: [("BACKEND", 0), ("STATE", 8), ("QUEUE", 6), ("P99", 8), ("BATCH", 6), ("RESTARTS", 8)],
            rows: state.backends.map {
                (
                    [
                        $0.name, $0.state, Self.count($0.queue), Self.time($0.slowest),
                        $0.batch.map(Self.count) ?? "-", Self.count($0.restarts),
                    ], $0.state != "ready"
                )
            })
    }

    private var moves: Table {
        Table(
            columns: [("MOVE", 0), ("STATE", 9), ("DONE", 6), ("RECORDS", 8)],
            rows: state.moves.map {
                let part = $0.total > 0 ? Self.percent($0.copied / $0.total) : "-"
                let isStuck = $0.state == "failed" || $0.state == "suspended"
                return ([$0.collection, $0.state, part, Self.count($0.total)], isStuck)
            })
    }

    /// Tables below each other, in so many lines: each gets its heading and a row, as long as there is room, then they
    /// take turns.
    private static func fit(_ tables: [Table], into height: Int, width: Int) -> [Line] {
        var shown = tables.filter { !$0.rows.isEmpty }
        // A heading, a row, and a blank line between two tables.
        while shown.count * 3 - 1 > height, shown.count > 1 { shown.removeLast() }
        guard !shown.isEmpty, height >= 2 else { return [] }
        var counts = shown.map { _ in 1 }
        var rest = height - (shown.count * 3 - 1)
        while rest > 0 {
            let growing = counts.indices.filter { counts[$0] < shown[$0].rows.count }
            guard let next = growing.min(by: { counts[$0] < counts[$1] }) else { break }
            counts[next] += 1
            rest -= 1
        }
        var lines: [Line] = []
        for (table, count) in zip(shown, counts) {
            if !lines.isEmpty { lines.append([]) }
            lines += text(of: table, rows: count, width: width)
        }
        return lines
    }

    private static func text(of table: Table, rows: Int, width: Int) -> [Line] {
        var columns = table.columns
        let narrowest = 12
        func rest() -> Int { width - columns.dropFirst().reduce(0) { $0 + $1.width + gap.count } }
        while columns.count > 1, rest() < narrowest { columns.removeLast() }
        let shown = table.rows.prefix(rows).map { row in
            (cells: row.cells.map(\.withVisibleControls), isAlarming: row.isAlarming)
        }
        let widest = shown.map { $0.cells[0].displayWidth }.max() ?? 0
        let first = max(1, min(rest(), max(widest, columns[0].name.count, min(rest(), 32))))
        func line(_ cells: [String]) -> String {
            var text = left(cells[0].cut(to: first), first)
            for (cell, column) in zip(cells, columns).dropFirst() {
                text += gap + right(cell.cut(to: column.width), column.width)
            }
            return text
        }
        return [[Span(text: line(table.columns.map(\.name)), style: .heading)]]
            + shown.map { [Span(text: line($0.cells), style: $0.isAlarming ? .alarm : .plain)] }
    }

    /// Two columns beside each other.
    private static func joined(_ left: [Line], _ right: [Line], width: Int) -> [Line] {
        (0..<max(left.count, right.count)).map { index in
            let first = index < left.count ? cut(left[index], to: width) : []
            guard index < right.count else { return first }
            let used = first.reduce(0) { $0 + $1.text.displayWidth }
            return first + [Span(text: String(repeating: " ", count: width - used + 3))] + right[index]
        }
    }

    private static func cut(_ line: Line, to width: Int) -> Line {
        var rest = width
        return line.compactMap { span in
            guard rest > 0 else { return nil }
            let text = span.text.cut(to: rest)
            rest -= text.displayWidth
            return Span(text: text, style: span.style)
        }
    }

    // MARK: Numbers

    private static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.displayWidth))
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.displayWidth)) + text
    }

    /// At most seven characters: `0.4`, `3`, `12`, `12.3k`, `1.23M`.
    static func count(_ number: Double) -> String {
        switch number {
        case _ where !(number < largest): "-"
        case ..<0.05: "0"
        case ..<9.95 where number != number.rounded(): decimal(number, 1)
        case ..<9999.5: String(Int(number.rounded()))
        case ..<999_950: decimal(number / 1e3, 1) + "k"
        case ..<999_950_000: decimal(number / 1e6, 2) + "M"
        default: decimal(number / 1e9, 2) + "G"
        }
    }

    /// What is not below is not a number of anything.
    private static let largest = 1e12

    private static func percent(_ part: Double, rounded isRounded: Bool = false) -> String {
        guard part < largest else { return "-" }
        return "\(Int(saturating: (max(0, part) * 100).rounded(isRounded ? .toNearestOrAwayFromZero : .down))) %"
    }

    /// Such as `12 µs`, `3.4 ms` or `1.2 s`.
    static func time(_ seconds: Double?) -> String {
        guard let seconds, seconds < 100_000 else { return "-" }
        return switch seconds {
        case ..<0.0009995: "\(Int((max(0, seconds) * 1e6).rounded())) µs"
        case ..<0.09995: decimal(seconds * 1e3, 1) + " ms"
        case ..<0.9995: "\(Int((seconds * 1e3).rounded())) ms"
        default: decimal(seconds, 1) + " s"
        }
    }

    static func bytes(_ number: Double) -> String {
        switch number {
        case _ where !(number / 1024 < largest): "-"
        case ..<1024: "\(Int(max(0, number))) B"
        case ..<(1024 * 1024): "\(Int(number / 1024)) KiB"
        case ..<(1024 * 1024 * 1024): decimal(number / 1024 / 1024, 1) + " MiB"
        case ..<(1024 * 1024 * 1024 * 1024): decimal(number / 1024 / 1024 / 1024, 1) + " GiB"
        default: decimal(number / 1024 / 1024 / 1024 / 1024, 1) + " TiB"
        }
    }

    /// Such as `3 d 4 h`, `4 h 5 min` or `42 s`.
    static func duration(_ seconds: Double) -> String {
        let seconds = Int(saturating: max(0, seconds))
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60)
        if days > 0 { return "\(days) d \(hours) h" }
        if hours > 0 { return "\(hours) h \(minutes) min" }
        return minutes > 0 ? "\(minutes) min \(seconds % 60) s" : "\(seconds) s"
    }

    private static func decimal(_ number: Double, _ digits: Int) -> String {
        let factor = digits == 1 ? 10.0 : 100.0
        let scaled = Int(saturating: (number * factor).rounded())
        let fraction = String(scaled % Int(factor))
        return "\(scaled / Int(factor))." + String(repeating: "0", count: digits - fraction.count) + fraction
    }
}
