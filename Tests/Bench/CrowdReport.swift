/// What a drop, a reload of one line and a start take, by how many collections there are.
struct CrowdReport {
    private var crowds: [Int: [Finding.Crowd]] = [:]

    mutating func add(_ crowd: Finding.Crowd) { crowds[crowd.collections, default: []].append(crowd) }

    private func median(_ count: Int, _ value: (Finding.Crowd) -> Double) -> Double {
        Report.median((crowds[count] ?? []).map(value))
    }

    var markdown: String {
        guard !crowds.isEmpty else { return "" }
        let head = ["collections", "drop, ms", "reload of a line, ms", "start to READY, ms", "grown, MiB"]
        let lines = crowds.keys.sorted().map { count in
            let cells = [
                "\(count)", median(count, \.dropMilliseconds).text(digits: 2),
                median(count, \.reloadMilliseconds).text(digits: 2), ready(count).text(digits: 1),
                grown(count).text(digits: 1),
            ]
            return "| \(cells.joined(separator: " | ")) |"
        }
        return "Drops and reloads of one line, and starts, with many collections (medians of the rounds):\n\n"
            + "| \(head.joined(separator: " | ")) |\n|\(String(repeating: " --- |", count: head.count))\n"
            + (lines + [""] + promises).joined(separator: "\n")
    }

    private func ready(_ count: Int) -> Double { median(count) { Report.median($0.readyMilliseconds) } }
    private func grown(_ count: Int) -> Double { max(0, median(count) { Double($0.grownKiB) / 1024 }) }

    private var promises: [String] {
        let few = 100
        let most = crowds.keys.max() ?? 0
        var lines: [String] = []
        if crowds[few] != nil, most > few {
            for (name, value) in [("drop", \Finding.Crowd.dropMilliseconds), ("reload", \.reloadMilliseconds)] {
                let ratio = median(most) { $0[keyPath: value] } / median(few) { $0[keyPath: value] }
                lines.append(line("a \(name) with \(most) / with \(few)", ratio, Promise.crowdRatio, digits: 2))
            }
        }
        for count in crowds.keys.sorted() {
            if let limit = Promise.readyMillisecondsByCollections[count] {
                lines.append(line("start to READY with \(count), ms", ready(count), limit, digits: 1))
            }
            lines.append(line("grown with \(count), MiB", grown(count), Promise.crowdGrownMiB, digits: 1))
        }
        return lines
    }

    private func line(_ title: String, _ value: Double, _ limit: Double, digits: Int) -> String {
        "- \(title): \(value.text(digits: digits)) (promised ≤ \(limit.text(digits: 0)), "
            + "kept: \(Report.verdict(value <= limit)))"
    }
}
