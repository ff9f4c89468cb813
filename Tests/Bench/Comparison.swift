/// The rows of two results: whether a target of crudd's has become slower.
///
/// Where a row has a peer that is not crudd, the ratios to it are compared, for the same machine is faster at one
/// time than at another; else the throughput.
struct Comparison {
    private struct Line {
        let title: String
        let quantity: String
        let before: Double
        let after: Double

        /// In percent.
        var change: Double { (after / before - 1) * 100 }
    }

    private let lines: [Line]
    /// Rows that only one of the results has.
    private let missing: Int
    private let allowedFall: Double

    /// - Parameter allowedFall: how much a row may fall, in percent.
    init(_ before: Report, _ after: Report, allowedFall: Double) {
        self.allowedFall = allowedFall
        let (old, new) = (Self.keys(before), Self.keys(after))
        missing = Set(old).symmetricDifference(new).count
        lines = old.compactMap { key in Self.line(key, before, after) }
    }

    private struct Key: Hashable {
        let row: Report.Row
        let target: String
    }

    private static func keys(_ report: Report) -> [Key] {
        report.rows.flatMap { row in
            report.targets(of: row).filter { Report.isOwn($0) }.map { Key(row: row, target: $0) }
        }
    }

    private static func line(_ key: Key, _ before: Report, _ after: Report) -> Line? {
        let name = Report.name(key.target)
        for peer in key.target == "adapter" ? ["postgresql"] : ["redis", "postgresql"] {
            if let old = before.ratio(key.row, key.target, peer), let new = after.ratio(key.row, key.target, peer) {
                return Line(title: key.row.title, quantity: "\(name) / \(Report.name(peer))", before: old, after: new)
            }
        }
        guard let old = before.median(key.row, key.target, \.requestsPerSecond),
            let new = after.median(key.row, key.target, \.requestsPerSecond)
        else { return nil }
        return Line(title: key.row.title, quantity: "\(name), k/s", before: old / 1000, after: new / 1000)
    }

    /// The number of rows that have fallen by more than allowed.
    var fallen: Int { lines.filter { $0.change < -allowedFall }.count }

    var isEmpty: Bool { lines.isEmpty }

    var markdown: String {
        let rows = lines.map { line in
            let change = (line.change < 0 ? "−" : "+") + abs(line.change).text(digits: 0)
            let cells = [
                line.title, line.quantity, line.before.text(digits: 2), line.after.text(digits: 2), "\(change) %",
                Report.verdict(line.change >= -allowedFall),
            ]
            return "| \(cells.joined(separator: " | ")) |"
        }
        let head = "operation | c | d | compared | before | after | change | ≥ −\(allowedFall.text(digits: 0)) %"
        return "| \(head) |\n|\(String(repeating: " --- |", count: 8))\n" + rows.joined(separator: "\n")
            + (missing == 0 ? "" : "\n\nRows that only one of the results has: \(missing).")
    }
}
