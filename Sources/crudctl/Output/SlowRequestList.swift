import CRUDJSON
import CRUDWire

/// Prints slow requests: a row of what all of them have, and below it in words what a search has looked for, what it
/// has found, and who has sent it.
struct SlowRequestList {
    let terminal: Terminal

    private static let headings = ["AT", "TOOK", "WAITED", "METHOD", "COLLECTION"]
    private static let gap = "  "
    private static let margin = "    "
    private static let narrowestCollection = 8

    func write(_ entries: [ResultObject], to output: OutputBuffer) throws {
        let rows = entries.map(Self.cells)
        let widths = Self.headings.indices.map { column in
            (rows + [Self.headings]).map { $0[column].displayWidth }.max() ?? 0
        }
        try output.append(terminal.bold(line(Self.headings, widths)) + "\n")
        for (row, entry) in zip(rows, entries) {
            try output.append(line(row, widths) + "\n")
            for detail in Self.details(of: entry) {
                for line in wrapped(detail) { try output.append(Self.margin + line + "\n") }
            }
        }
    }

    // MARK: Rows

    private static func cells(of entry: ResultObject) -> [String] {
        [
            entry.integer("at").flatMap(Amount.instant) ?? "-", Amount.time(number("seconds", of: entry)),
            Amount.time(number("waited", of: entry)), entry.string("method") ?? "-",
            (entry.string("collection") ?? "-").withVisibleControls,
        ]
    }

    private static func number(_ name: StaticString, of entry: ResultObject) -> Double? {
        entry.value(name).flatMap { Double(String(decoding: $0, as: UTF8.self)) }
    }

    /// The last column is cut where there is no room for all of it.
    private func line(_ cells: [String], _ widths: [Int]) -> String {
        let fixed = zip(cells, widths).dropLast().map { cell, width in
            cell + String(repeating: " ", count: width - cell.displayWidth) + Self.gap
        }.joined()
        let last = cells.last ?? ""
        guard let width = terminal.width else { return fixed + last }
        return (fixed + last.cut(to: max(Self.narrowestCollection, width - fixed.displayWidth))).cut(to: width)
    }

    // MARK: Details

    private static func details(of entry: ResultObject) -> [String] {
        var details: [String] = []
        let filter = entry.string("filter")
        let sort = entry.string("sort").map { "sort: \($0)" }
        let shape = [filter, sort].compactMap { $0 }.joined(separator: "; ")
        if !shape.isEmpty { details.append(shape) }
        if let plan = entry.object("plan") {
            details.append(words(of: plan, returned: entry.integer("returned")))
        } else if let returned = entry.integer("returned") {
            details.append("\(returned) record\(returned == 1 ? "" : "s")")
        }
        let client = entry.string("client") ?? ""
        let user = Account.user(entry.integer("uid") ?? 0)
        details.append(client.isEmpty ? user : "\(user), client \(client)")
        if let traceparent = entry.string("traceparent") { details.append("trace parent \(traceparent)") }
        return details.map(\.withVisibleControls)
    }

    private static func words(of plan: ResultObject, returned: Int?) -> String {
        let scanned = plan.integer("scanned") ?? 0
        var parts = [returned.map { "\($0) of \(scanned) scanned records returned" } ?? "\(scanned) records scanned"]
        parts.append(plan.string("index").map { "index \($0)" } ?? "no index")
        switch plan.string("sort") {
        case "storage": parts.append("sorted by the storage")
        case "host": parts.append("sorted by the daemon")
        default: break
        }
        return parts.joined(separator: ", ")
    }

    /// The text in lines that fit, broken between words where there are some.
    private func wrapped(_ text: String) -> [String] {
        guard let width = terminal.width.map({ max(1, $0 - Self.margin.count) }) else { return [text] }
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ", omittingEmptySubsequences: false).map(String.init) {
            let longer = line.isEmpty ? word : "\(line) \(word)"
            if longer.displayWidth <= width {
                line = longer
            } else {
                if !line.isEmpty { lines.append(line) }
                line = word.cut(to: width)
            }
        }
        return lines + [line]
    }
}
