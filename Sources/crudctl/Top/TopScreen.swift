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
            "crudd \(state.version.withVisibleControls)", "up \(Amount.duration(state.uptime))",
            state.sessions == 1 ? "1 session" : "\(Amount.count(state.sessions)) sessions",
            "\(Amount.bytes(state.residentBytes)) memory", state.cpu.map { "\(Amount.percent($0, rounded: true)) CPU" },
            "\(Amount.bytes(state.heldBytes)) in buffers", "q quits",
        ]
        return [Span(text: parts.compactMap(\.self).joined(separator: " · "), style: .heading)]
    }

    private var graphs: [Line] {
        let rows: [(String, [Double?], Double?, String)] = [
            ("requests", state.requests, nil, state.requests.last?.map { "\(Amount.count($0))/s" } ?? "-"),
            ("errors", state.errors, nil, state.errors.last?.map { "\(Amount.count($0))/s" } ?? "-"),
            ("cache hits", state.hitRatios, 1, state.hitRatio.map { Amount.percent($0) } ?? "-"),
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
                        $0.name, Amount.count($0.requests), Amount.time($0.slowest), Amount.time($0.median),
                        Amount.count($0.errors),
                    ],
                    false
                )
            })
    }

    private var collections: Table {
        Table(
            columns: [("COLLECTION", 0), ("REQ/S", 8)],
            rows: state.collections.filter { $0.requests > 0 }.map { ([$0.name, Amount.count($0.requests)], false) })
    }

    private var backends: Table {
        Table(
            columns: [("BACKEND", 0), ("STATE", 8), ("QUEUE", 6), ("P99", 8), ("BATCH", 6), ("RESTARTS", 8)],
            rows: state.backends.map {
                (
                    [
                        $0.name, $0.state, Amount.count($0.queue), Amount.time($0.slowest),
                        $0.batch.map(Amount.count) ?? "-", Amount.count($0.restarts),
                    ], $0.state != "ready"
                )
            })
    }

    private var moves: Table {
        Table(
            columns: [("MOVE", 0), ("STATE", 9), ("DONE", 6), ("RECORDS", 8)],
            rows: state.moves.map {
                let part = $0.total > 0 ? Amount.percent($0.copied / $0.total) : "-"
                let isStuck = $0.state == "failed" || $0.state == "suspended"
                return ([$0.collection, $0.state, part, Amount.count($0.total)], isStuck)
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

    // MARK: Cells

    private static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.displayWidth))
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.displayWidth)) + text
    }
}
