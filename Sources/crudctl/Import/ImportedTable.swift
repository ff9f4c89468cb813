import CRUDJSON
import CRUDModel

/// The first pass over a table, which writes nothing to the daemon: it checks every row, and makes a dump of the table
/// in a temporary file that has no name any more. Row n of the table is line n of the dump.
struct ImportedTable {
    /// How a table is read.
    struct Options {
        var collection: String
        /// The column with the ids.
        var id: String
        /// Whether the items have that column too.
        var keepsID: Bool
        /// By name; a column that is missing has texts.
        var kinds: [(name: String, kind: ImportColumn.Kind)]
        var separator: UInt8
    }

    /// The dump.
    let dump: DumpInput
    /// How many records it has.
    private(set) var records = 0

    private static let progressInterval = 1000
    private static let flushBytes = 256 << 10

    /// - Parameter progress: is called now and then.
    /// - Throws: ``CRUDError`` with row and column of the first error.
    init(
        _ input: DumpInput, _ options: Options, _ limits: DaemonLimits,
        progress: (_ records: Int, _ fraction: Double) -> Void
    ) throws {
        var reader = try CSVReader(input, separator: options.separator, maximumBytes: limits.frameBytes)
        let columns = try Self.columns(try reader.next(), options)
        // Checked by `columns`.
        let idColumn = columns.firstIndex { $0.name == options.id } ?? 0
        var file = try TemporaryDump()
        var header = JSONWriter()
        header.object { header in
            header.member("crudd", "dump")
            header.member("version", DumpLine.version)
            header.member("collection", options.collection)
        }
        var text = header.bytes + [Self.lineEnd]
        var ids: Set<[UInt8]> = []
        while let fields = try reader.next() {
            guard fields.count == columns.count else {
                throw Self.error(
                    reader.row, nil, "there are \(fields.count) fields, and \(columns.count) columns in the first row")
            }
            for (column, field) in zip(columns, fields) where String(validating: field.bytes, as: UTF8.self) == nil {
                throw Self.error(reader.row, column, "not valid UTF-8")
            }
            let id = fields[idColumn].bytes
            if let violation = Naming.violation(id.span, maximum: Naming.maximumIDBytes) {
                throw Self.error(reader.row, columns[idColumn], "the id \(violation)")
            }
            guard ids.insert(id).inserted else {
                throw Self.error(reader.row, columns[idColumn], "the id \(quoted(id)) stands in an earlier row too")
            }
            text += #"{"id":"#.utf8
            text.appendJSONString(id)
            text += #","item":"#.utf8
            text += try Self.item(fields, columns, options.keepsID ? nil : idColumn, reader.row, limits)
            text += "}\n".utf8
            records += 1
            if records % Self.progressInterval == 0 { progress(records, Double(reader.offset) / Double(input.size)) }
            guard text.count >= Self.flushBytes else { continue }
            try file.write(text)
            text.removeAll(keepingCapacity: true)
        }
        text += #"{"count":\#(records)}"#.utf8
        try file.write(text + [Self.lineEnd])
        dump = file.input()
    }

    private static let lineEnd = UInt8(ascii: "\n")

    private static func item(
        _ fields: [CSVReader.Field], _ columns: [ImportColumn], _ omitted: Int?, _ row: Int, _ limits: DaemonLimits
    ) throws(CRUDError) -> [UInt8] {
        var item = [UInt8(ascii: "{")]
        for (index, (column, field)) in zip(columns, fields).enumerated() where index != omitted {
            if let reason = column.append(field, to: &item) { throw error(row, column, reason) }
        }
        item.append(UInt8(ascii: "}"))
        var scanner = JSONScanner()
        guard let slice = try? scanner.document(item.span) else { throw error(row, nil, "the item is not valid JSON") }
        do throws(CRUDError) { try limits.check(slice) } catch {
            var error = error
            error.message = "row \(row): \(error.message)"
            throw error
        }
        return item
    }

    /// The columns that the first row names.
    private static func columns(_ header: [CSVReader.Field]?, _ options: Options) throws(CRUDError) -> [ImportColumn] {
        guard let header else { throw CRUDError(.parseError, "the table is empty: its first row names the columns") }
        var columns: [ImportColumn] = []
        for (index, field) in header.enumerated() {
            guard let name = String(validating: field.bytes, as: UTF8.self), !name.isEmpty else {
                throw CRUDError(.parseError, "row 1: column \(index + 1) has no name")
            }
            guard !columns.contains(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
                throw CRUDError(.parseError, "row 1: two columns are called \(quoted(name.utf8))")
            }
            let kind = options.kinds.last { $0.name.utf8.elementsEqual(name.utf8) }?.kind ?? .string
            columns.append(ImportColumn(name: name, kind: kind))
        }
        for name in [options.id] + options.kinds.map(\.name)
        where !columns.contains(where: { $0.name.utf8.elementsEqual(name.utf8) }) {
            let names = columns.map { quoted($0.name.utf8) }.joined(separator: ", ")
            throw CRUDError(.invalidParams, "the table has no column \(quoted(name.utf8)); it has \(names)")
        }
        return columns
    }

    private static func error(_ row: Int, _ column: ImportColumn?, _ reason: String) -> CRUDError {
        let place = column.map { ", column \(quoted($0.name.utf8))" } ?? ""
        var error = CRUDError(.parseError, "row \(row)\(place): \(reason)")
        error.details.line = row
        return error
    }
}
