import CRUDJSON
import CRUDWire

/// Prints a query's records page by page, so that none has to be kept.
///
/// A single page is printed as the daemon has sent it. All pages of a query are printed as one document: in JSON an
/// object with all records, in YAML a sequence; each page is a table of its own. Corrupt records are named in the
/// document, where it is an object, and else on standard error.
struct PageWriter {
    private let printer: ResultPrinter
    private let hasAllPages: Bool
    private var isFirst = true
    /// Whether any page had records: a page may be empty, although others follow.
    private var hasRecords = false
    /// The ids of corrupt records that are printed at the end, as JSON text.
    private var corrupt: [String] = []
    /// The ids of corrupt records of all pages: two pages may name the same one.
    private var named: Set<[UInt8]> = []

    init(_ printer: ResultPrinter, hasAllPages: Bool) {
        self.printer = printer
        self.hasAllPages = hasAllPages
    }

    mutating func write(_ page: ResultObject) throws {
        defer { isFirst = false }
        let records = page.elements("records") ?? []
        let corrupt = (page.elements("corrupt") ?? []).filter { named.insert(Array($0)).inserted }
        switch printer.format {
        case .json where hasAllPages:
            var text = Array((isFirst ? #"{"records":["# : "").utf8)
            for (index, record) in records.enumerated() {
                if index > 0 || hasRecords { text.append(UInt8(ascii: ",")) }
                text += record
            }
            hasRecords = hasRecords || !records.isEmpty
            try StandardOutput.write(text)
            self.corrupt += corrupt.map { String(decoding: $0, as: UTF8.self) }
        case .yaml where hasAllPages:
            if !records.isEmpty {
                let values = try records.map { try JSONValue(Array($0)) }
                try StandardOutput.write(Array(YAMLWriter.text(of: .array(values)).utf8))
            }
            CorruptRecords.note(corrupt)
        case .table:
            let rows = try records.map { Self.row(try JSONValue(Array($0))) }
            try StandardOutput.write(Array(TableWriter(terminal: printer.terminal).text(of: .array(rows)).utf8))
            if let plan = page.value("plan") {
                StandardError.write("plan: \(try JSONValue(Array(plan)).compact.withVisibleControls)\n")
            }
            CorruptRecords.note(corrupt)
        default:
            try StandardOutput.write(printer.text(of: page.text, list: "records"))
            if printer.format == .ndjson { CorruptRecords.note(corrupt) }
        }
    }

    /// To be called after the last page.
    mutating func end(hasMore: Bool) throws {
        if hasAllPages, printer.format == .json {
            let member = corrupt.isEmpty ? "" : #","corrupt":[\#(corrupt.joined(separator: ","))]"#
            try StandardOutput.write("]\(member)}\n".utf8)
        }
        // In JSON and YAML the page's cursor says so.
        if hasMore, [.table, .ndjson].contains(printer.format) {
            StandardError.write("crudctl: there are more records; use --all to print them\n")
        }
    }

    /// A record as a row: its id and the members of its item, or the item if that is not an object.
    private static func row(_ record: JSONValue) -> JSONValue {
        guard case .object(let members) = record else { return record }
        var row: [(key: String, value: JSONValue)] = []
        for (key, value) in members where key != "revision" {
            guard key == "item", case .object(let properties) = value else {
                row.append((key, value))
                continue
            }
            // The column `id` is the record's own id.
            for property in properties { row.append((property.key == "id" ? "item.id" : property.key, property.value)) }
        }
        return .object(row)
    }
}
