/// Formats results for people: a list of objects as rows and columns, an object as a line for each member.
///
/// On a terminal nothing is wider than its width: columns are cut, the widest first, and members of a single object are
/// wrapped.
struct TableWriter {
    private static let gap = "  "
    /// The minimum width to which a column is cut.
    private static let narrowestColumn = 6

    let terminal: Terminal

    func text(of value: JSONValue) -> String {
        switch value {
        case .array(let elements): rows(elements)
        case .object(let members) where members.isEmpty: "ok\n"
        case .object(let members): lines(members)
        default: cell(value) + "\n"
        }
    }

    // MARK: Rows and columns

    private func rows(_ elements: [JSONValue]) -> String {
        var keys: [String] = []
        let records = elements.map { element -> [(key: String, value: JSONValue)] in
            guard case .object(let members) = element else { return [("", element)] }
            return members
        }
        for member in records.joined() where !keys.contains(where: { isSame($0, member.key) }) {
            keys.append(member.key)
        }
        guard !keys.isEmpty else { return "" }

        let header = keys.map { $0.withVisibleControls.uppercased() }
        let body = records.map { record in
            keys.map { key in record.last { isSame($0.key, key) }.map { cell($0.value) } ?? "" }
        }
        let natural = keys.indices.map { column in
            body.reduce(header[column].displayWidth) { max($0, $1[column].displayWidth) }
        }
        let widths = fitted(natural)
        let hasHeader = keys != [""]
        return (hasHeader ? terminal.bold(row(header, widths)) + "\n" : "")
            + body.map { row($0, widths) + "\n" }.joined()
    }

    /// By code point: `String`'s == ignores the difference between canonically equivalent names.
    private func isSame(_ left: String, _ right: String) -> Bool {
        left.utf8.elementsEqual(right.utf8)
    }

    private func row(_ cells: [String], _ widths: [Int]) -> String {
        var row = ""
        for (index, (cell, width)) in zip(cells, widths).enumerated() {
            let cell = cell.cut(to: width)
            row += cell
            if index < cells.count - 1 {
                row += String(repeating: " ", count: max(0, width - cell.displayWidth)) + Self.gap
            }
        }
        return row
    }

    /// `widths` reduced to fit the terminal, the widest first.
    private func fitted(_ widths: [Int]) -> [Int] {
        guard let total = terminal.width else { return widths }
        let available = total - Self.gap.count * (widths.count - 1)
        var widths = widths
        while widths.reduce(0, +) > available, let widest = widths.max(), widest > Self.narrowestColumn {
            let next = max(widths.filter { $0 < widest }.max() ?? 0, Self.narrowestColumn)
            let count = widths.count { $0 == widest }
            let excess = widths.reduce(0, +) - available
            let step = min(widest - next, (excess + count - 1) / count)
            widths = widths.map { $0 == widest ? widest - step : $0 }
        }
        return widths
    }

    // MARK: Lines

    private func lines(_ members: [(key: String, value: JSONValue)]) -> String {
        let keys = members.map { $0.key.withVisibleControls }
        let keyWidth = keys.reduce(0) { max($0, $1.displayWidth) }
        let margin = String(repeating: " ", count: keyWidth) + Self.gap
        var text = ""
        for (key, member) in zip(keys, members) {
            let padding = String(repeating: " ", count: keyWidth - key.displayWidth) + Self.gap
            text += terminal.bold(key) + padding
            text += valueLines(member.value, width: terminal.width.map { $0 - margin.displayWidth })
                .joined(separator: "\n" + margin)
            text += "\n"
        }
        return text
    }

    private func valueLines(_ value: JSONValue, width: Int?) -> [String] {
        let line = cell(value)
        guard value.isContainer, let width, line.displayWidth > width else { return [line] }
        return value.indentedLines.map(\.withVisibleControls)
    }

    // MARK: Cells

    private func cell(_ value: JSONValue) -> String {
        switch value {
        case .string(let string): return string.withVisibleControls
        case .array(let elements) where !elements.isEmpty && !elements.contains(where: \.isContainer):
            return elements.map(cell).joined(separator: ", ")
        default: return value.compact.withVisibleControls
        }
    }
}
