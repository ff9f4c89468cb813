import CRUDJSON
import CRUDModel
import CRUDWire

/// Formats results for people: a list of objects as rows and columns, an object as a line for each member.
///
/// On a terminal nothing is wider than its width: columns are cut, the widest first, those that do not fit at all are
/// left out, and members of a single object are wrapped. The text is read twice, once for the widths, so that a list of
/// any length takes no memory, and there is a limit to the columns, so that members that each record calls differently
/// do not make a table of all names times all records.
struct TableWriter {
    private static let gap = "  "
    /// The minimum width to which a column is cut, unless its notation says otherwise.
    private static let narrowestColumn = 6
    /// More would not be read by anybody.
    private static let maximumColumns = 100

    let terminal: Terminal
    let output: OutputBuffer
    /// Whether the elements of a list are records: a row is a record's id and the members of its item, or the item if
    /// that is not an object.
    var showsRecords = false
    /// How members of the object, or of each element, are written that are not merely numbers.
    var notations: Notations = [:]

    /// Whether the members of an object's objects are lines of their own, such as `cache.hits`, rather than JSON.
    var expandsObjects = false

    /// How values are written; the keys are names of members.
    typealias Notations = [String: Notation]

    enum Notation {
        /// In milliseconds since 1970-01-01 UTC.
        case instant
        /// In seconds, of a part of one or some.
        case duration
        /// In seconds, of minutes or days.
        case age
        case bytes
        /// As it is, and left out where there is no room for all of it.
        case whole
        /// Cut to no less than so many columns, and left out where there is no room for them.
        case text(least: Int)
        /// An error as a message, rather than as JSON.
        case error
        /// `{used, maximum}` by names.
        case quotas
        /// A list of words, which may have none.
        case list

        /// Whether a part of it says something else than all of it.
        fileprivate var isRigid: Bool {
            switch self {
            case .instant, .duration, .age, .bytes, .whole: true
            case .text, .error, .quotas, .list: false
            }
        }
    }

    /// - Returns: whether columns were left out.
    func write(_ value: JSONSlice, _ text: Span<UInt8>) throws -> Bool {
        switch value.kind {
        case .array: return try rows(value, text)
        case .object where try value.isEmpty(text): try output.append("ok\n")
        case .object where expandsObjects: try expandedLines(value, text)
        case .object: try lines(value, text)
        default: try output.append(Self.cell(value, text) + "\n")
        }
        return false
    }

    // MARK: Rows and columns

    private struct Columns {
        /// By the name of the member.
        var indexes: [[UInt8]: Int] = [:]
        var headings: [String] = []
        var widths: [Int] = []
        /// Those that are never cut, such as numbers: a part of a number is another number.
        var rigid: [Bool] = []
        /// To what the others are cut at most.
        var least: [Int] = []
        var areComplete = true

        /// The index of the column of a name; nil where there is no room for it.
        mutating func index(of name: [UInt8], _ notation: Notation?) -> Int? {
            if let index = indexes[name] { return index }
            guard widths.count < maximumColumns else {
                areComplete = false
                return nil
            }
            let heading = String(decoding: name, as: UTF8.self).withVisibleControls.uppercased()
            indexes[name] = widths.count
            headings.append(heading)
            widths.append(heading.displayWidth)
            rigid.append(true)
            if case .text(let least) = notation { self.least.append(least) } else { least.append(narrowestColumn) }
            return widths.count - 1
        }
    }

    private func rows(_ list: JSONSlice, _ text: Span<UInt8>) throws -> Bool {
        var columns = Columns()
        try list.forEachElement(text) { element in
            try forEachCell(of: element, text) { name, value in
                let notation = notation(of: name)
                guard let index = columns.index(of: name, notation) else { return }
                columns.widths[index] = max(columns.widths[index], try cell(value, text, name).displayWidth)
                if !(notation?.isRigid ?? (value.kind == .number)) { columns.rigid[index] = false }
            }
        }
        guard !columns.widths.isEmpty else { return false }
        let widths = fitted(columns)
        if columns.headings != [""] {
            try output.append(terminal.bold(row(columns.headings, widths)) + "\n")
        }
        try list.forEachElement(text) { element in
            var cells = widths.map { _ in "" }
            try forEachCell(of: element, text) { name, value in
                guard let index = columns.indexes[name], index < cells.count else { return }
                cells[index] = try cell(value, text, name)
            }
            try output.append(row(cells, widths) + "\n")
        }
        return !columns.areComplete || widths.count < columns.widths.count
    }

    private func forEachCell(
        of element: JSONSlice, _ text: Span<UInt8>, _ body: (_ name: [UInt8], JSONSlice) throws -> Void
    ) throws {
        guard element.kind == .object else { return try body([], element) }
        try element.forEachMember(text) { key, value in
            guard showsRecords else { return try body(key.decodedString(text), value) }
            if key.equals("revision", text) { return }
            guard key.equals("item", text), value.kind == .object else {
                return try body(key.decodedString(text), value)
            }
            try value.forEachMember(text) { key, value in
                // The column `id` is the record's own id.
                try body(key.equals("id", text) ? Array("item.id".utf8) : key.decodedString(text), value)
            }
        }
    }

    private func row(_ cells: [String], _ widths: [Int]) -> String {
        var row = ""
        for (index, (cell, width)) in zip(cells, widths).enumerated() {
            let cell = cell.cut(to: width)
            row += cell
            if index < widths.count - 1 {
                row += String(repeating: " ", count: max(0, width - cell.displayWidth)) + Self.gap
            }
        }
        return row
    }

    /// The widths of the columns reduced to fit the terminal, the widest first; without those for which there is no
    /// room.
    private func fitted(_ columns: Columns) -> [Int] {
        guard let total = terminal.width else { return columns.widths }
        let narrowest = columns.widths.indices.map {
            columns.rigid[$0] ? columns.widths[$0] : min(columns.widths[$0], columns.least[$0])
        }
        var sum = -Self.gap.count
        let count = narrowest.prefix { width in
            sum += width + Self.gap.count
            return sum <= total
        }.count
        guard count > 0 else { return [total] }
        let available = total - Self.gap.count * (count - 1)
        var widths = zip(columns.widths, narrowest).prefix(count).map { max(min($0, available), $1) }
        for _ in 0..<max(0, widths.reduce(0, +) - available) {
            let widest = widths.indices.filter { widths[$0] > narrowest[$0] }.max { widths[$0] < widths[$1] }
            if let widest { widths[widest] -= 1 }
        }
        return widths
    }

    // MARK: Lines

    private func lines(_ object: JSONSlice, _ text: Span<UInt8>) throws {
        var keyWidth = 0
        try object.forEachMember(text) { key, _ in keyWidth = max(keyWidth, Self.visible(key, text).displayWidth) }
        let margin = keyWidth + Self.gap.count
        try object.forEachMember(text) { key, value in
            let name = Self.visible(key, text)
            try output.append(terminal.bold(name))
            try output.append(spaces: margin - name.displayWidth)
            if value.kind == .number {
                try output.append(cell(value, text, key.decodedString(text)))
            } else {
                try writeValue(value, text, at: margin)
            }
            try output.append("\n")
        }
    }

    private func writeValue(_ value: JSONSlice, _ text: Span<UInt8>, at margin: Int) throws {
        if value.isContainer, let width = terminal.width {
            guard let cell = try Self.shortCell(value, text, width: width - margin) else {
                // Its line ends are ours: those of the text are white space, which it leaves out.
                return try JSONPrinter(margin: margin).print(value, text) { piece in
                    if piece[0] == UInt8(ascii: "\n") {
                        try output.append(piece)
                    } else {
                        try output.appendVisible(piece)
                    }
                }
            }
            return try output.append(cell)
        }
        guard value.isContainer, try !Self.isListOfScalars(value, text) else {
            return try output.append(Self.cell(value, text))
        }
        try JSONPrinter().print(value, text) { try output.appendVisible($0) }
    }

    /// The cell, if it takes at most so many columns.
    private static func shortCell(_ value: JSONSlice, _ text: Span<UInt8>, width: Int) throws -> String? {
        // A longer one is wrapped, even if it has white space only.
        guard value.count <= 64 * max(0, width) else { return nil }
        let cell = try cell(value, text)
        return cell.displayWidth <= width ? cell : nil
    }

    // MARK: Lines of nested objects

    /// What is written as a line: a member that is no object.
    private struct Leaf {
        /// With the names of the objects around it.
        let path: String
        let name: [UInt8]
        let value: JSONSlice
    }

    private func expandedLines(_ object: JSONSlice, _ text: Span<UInt8>) throws {
        let leaves = try leaves(of: object, text)
        let margin = (leaves.map(\.path.displayWidth).max() ?? 0) + Self.gap.count
        for leaf in leaves {
            try output.append(terminal.bold(leaf.path))
            try output.append(spaces: margin - leaf.path.displayWidth)
            try output.append(expanded(leaf, text, margin) + "\n")
        }
    }

    private func leaves(of object: JSONSlice, _ text: Span<UInt8>, in path: String = "") throws -> [Leaf] {
        var leaves: [Leaf] = []
        try object.forEachMember(text) { key, value in
            let path = path + Self.visible(key, text)
            if value.kind == .object, try !value.isEmpty(text) {
                leaves += try self.leaves(of: value, text, in: path + ".")
            } else {
                leaves.append(Leaf(path: path, name: key.decodedString(text), value: value))
            }
        }
        return leaves
    }

    /// The text of a member; that of a list of objects has a line, or several, for each of them.
    private func expanded(_ leaf: Leaf, _ text: Span<UInt8>, _ margin: Int) throws -> String {
        guard leaf.value.isContainer else { return try cell(leaf.value, text, leaf.name) }
        if try leaf.value.isEmpty(text) { return "none" }
        var lines: [String] = []
        let isList = try Self.isListOfScalars(leaf.value, text)
        var pieces: [String] = []
        try leaf.value.forEachElement(text) { element in
            if element.kind == .object {
                pieces += try leaves(of: element, text).map { try "\($0.path) \(expanded($0, text, 0))" }
            } else {
                pieces.append(try Self.cell(element, text))
            }
            guard !isList else { return }
            lines += wrapped(pieces, at: margin)
            pieces = []
        }
        lines += wrapped(pieces, at: margin)
        return lines.joined(separator: "\n" + String(repeating: " ", count: margin))
    }

    /// Pieces one after the other, in as many lines as the terminal needs.
    private func wrapped(_ pieces: [String], at margin: Int) -> [String] {
        var lines: [String] = []
        for (index, piece) in pieces.enumerated() {
            let piece = piece + (index < pieces.count - 1 ? "," : "")
            if let last = lines.last, margin + last.displayWidth + 1 + piece.displayWidth <= terminal.width ?? .max {
                lines[lines.count - 1] = last + " " + piece
            } else {
                lines.append(piece)
            }
        }
        return lines
    }

    // MARK: Cells

    /// The cell of a member.
    private func cell(_ value: JSONSlice, _ text: Span<UInt8>, _ name: [UInt8]) throws -> String {
        guard let notation = notation(of: name) else { return try Self.cell(value, text) }
        switch (notation, value.kind) {
        case (.error, .object): return try Self.message(value, text) ?? Self.cell(value, text)
        case (.quotas, .object): return try Self.quotas(value, text)
        case (.list, .array) where try value.isEmpty(text): return "none"
        case (_, .number): return number(value, text, notation)
        default: return try Self.cell(value, text)
        }
    }

    private func number(_ value: JSONSlice, _ text: Span<UInt8>, _ notation: Notation) -> String {
        let number = String(decoding: value.bytes(text), as: UTF8.self)
        let written: String? =
            switch notation {
            case .instant: Int(number).flatMap(Amount.instant)
            case .duration: Double(number).map { Amount.time($0) }
            case .age: Double(number).map(Amount.duration)
            case .bytes: Double(number).map(Amount.bytes)
            case .whole, .text, .error, .quotas, .list: nil
            }
        return written ?? number
    }

    private static func message(_ value: JSONSlice, _ text: Span<UInt8>) -> String? {
        CRUDError(errorObject: Array(value.bytes(text))).map { "\($0.code.name): \($0.message)".withVisibleControls }
    }

    /// Such as `collections 3 of 10, records 5 of 50`.
    private static func quotas(_ value: JSONSlice, _ text: Span<UInt8>) throws -> String {
        var quotas: [String] = []
        try value.forEachMember(text) { key, quota in
            let quota = ResultObject(Array(quota.bytes(text)))
            let used = quota?.integer("used").map(String.init) ?? "?"
            quotas.append("\(visible(key, text)) \(used) of \(quota?.integer("maximum") ?? 0)")
        }
        return quotas.joined(separator: ", ")
    }

    private func notation(of name: [UInt8]) -> Notation? {
        notations.isEmpty ? nil : notations[String(decoding: name, as: UTF8.self)]
    }

    private static func cell(_ value: JSONSlice, _ text: Span<UInt8>) throws -> String {
        if value.kind == .string { return visible(value, text) }
        guard try isListOfScalars(value, text) else {
            var cell: [UInt8] = []
            try JSONPrinter().print(value, text) { cell.appendVisible($0) }
            return String(decoding: cell, as: UTF8.self)
        }
        var cells: [String] = []
        try value.forEachElement(text) { cells.append(try cell($0, text)) }
        return cells.joined(separator: ", ")
    }

    private static func isListOfScalars(_ value: JSONSlice, _ text: Span<UInt8>) throws -> Bool {
        try value.kind == .array && value.depth == 1 && !value.isEmpty(text)
    }

    private static func visible(_ string: JSONSlice, _ text: Span<UInt8>) -> String {
        String(decoding: string.decodedString(text), as: UTF8.self).withVisibleControls
    }
}
