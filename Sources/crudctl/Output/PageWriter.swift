import CRUDJSON
import CRUDWire

/// Prints a query's records page by page, so that none has to be kept.
///
/// A single page is printed as the daemon has sent it. All pages of a query are printed as one document: in JSON an
/// object with all records, in YAML a sequence; each page is a table of its own. Corrupt records are named in the
/// document, where it is an object, and else on standard error.
struct PageWriter {
    private let printer: ResultPrinter
    private let output: OutputBuffer
    private let hasAllPages: Bool
    private var isFirst = true
    /// Whether any page had records: a page may be empty, although others follow.
    private(set) var hasRecords = false
    private var lacksColumns = false
    /// The ids of corrupt records that are printed at the end, as JSON text.
    private var corrupt: [String] = []
    /// The ids of corrupt records of all pages: two pages may name the same one.
    private var named: Set<[UInt8]> = []

    init(_ printer: ResultPrinter, hasAllPages: Bool) {
        self.printer = printer
        self.hasAllPages = hasAllPages
        output = printer.output
    }

    mutating func write(_ page: ResultObject) throws {
        defer { isFirst = false }
        let corrupt = (page.elements("corrupt") ?? []).filter { named.insert(Array($0)).inserted }
        let text = page.text.span
        let records = page.value("records").map { JSONSlice(start: $0.startIndex, end: $0.endIndex, kind: .array) }
        let isEmpty = try records?.isEmpty(text) ?? true
        defer { hasRecords = hasRecords || !isEmpty }
        switch printer.format {
        case .json where hasAllPages:
            if isFirst { try output.append(#"{"records":["#) }
            if let records, !isEmpty {
                if hasRecords { try output.append(",") }
                try output.append(text.extracting(records.start + 1..<records.end - 1))
            }
            self.corrupt += corrupt.map { String(decoding: $0, as: UTF8.self) }
        case .yaml where hasAllPages:
            if let records, !isEmpty { try YAMLWriter(output: output).write(records, text) }
        case .table:
            if let records {
                let table = TableWriter(
                    terminal: printer.terminal, output: output, showsRecords: true, notations: ["expiresAt": .instant])
                lacksColumns = try table.write(records, text) || lacksColumns
            }
        default: _ = try printer.write(page.text, list: "records", to: output)
        }
        try output.end()
        if printer.format == .table, let plan = page.value("plan") {
            let slice = JSONSlice(start: plan.startIndex, end: plan.endIndex, kind: .object)
            let line = String(decoding: try JSONPrinter.line(slice, text), as: UTF8.self)
            StandardError.write("plan: \(line.withVisibleControls)\n")
        }
        if printer.format != .json, hasAllPages || printer.format != .yaml { CorruptRecords.note(corrupt) }
    }

    /// To be called after the last page.
    mutating func end(hasMore: Bool) throws {
        if hasAllPages, printer.format == .json {
            let member = corrupt.isEmpty ? "" : #","corrupt":[\#(corrupt.joined(separator: ","))]"#
            try output.append("]\(member)}\n")
            try output.end()
        }
        if printer.format == .table, !hasRecords {
            try printer.noteEmptiness("records", to: output)
            try output.end()
        }
        if lacksColumns {
            StandardError.write("crudctl: there are more columns; choose with --fields, or use -o json\n")
        }
        // In JSON and YAML the page's cursor says so.
        if hasMore, [.table, .ndjson].contains(printer.format) {
            StandardError.write("crudctl: there are more records; use --all to print them\n")
        }
    }
}
