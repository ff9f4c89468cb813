import CRUDJSON
import CRUDWire

/// Prints a query's records page by page, so that none has to be kept.
///
/// A single page is printed as the daemon answers it. A walk over all pages is printed as one document: in JSON an
/// object with all records, in YAML a sequence; a table begins anew with each page.
struct PageWriter {
    private let printer: ResultPrinter
    private let isWalk: Bool
    private var isFirst = true

    init(_ printer: ResultPrinter, isWalk: Bool) {
        self.printer = printer
        self.isWalk = isWalk
    }

    mutating func write(_ page: ResultObject) throws {
        defer { isFirst = false }
        let records = page.elements("records") ?? []
        switch printer.format {
        case .json where isWalk:
            var text = Array((isFirst ? #"{"records":["# : "").utf8)
            for (index, record) in records.enumerated() {
                if index > 0 || !isFirst { text.append(UInt8(ascii: ",")) }
                text += record
            }
            try StandardOutput.write(text)
        case .yaml where isWalk:
            guard !records.isEmpty else { return }
            let values = try records.map { try JSONValue(Array($0)) }
            try StandardOutput.write(Array(YAMLWriter.text(of: .array(values)).utf8))
        case .table:
            let rows = try records.map { Self.row(try JSONValue(Array($0))) }
            try StandardOutput.write(Array(TableWriter(terminal: printer.terminal).text(of: .array(rows)).utf8))
            if let plan = page.value("plan") {
                StandardError.write("plan: \(try JSONValue(Array(plan)).compact.withVisibleControls)\n")
            }
        default: try StandardOutput.write(printer.text(of: page.text, list: "records"))
        }
    }

    /// All pages that were asked for have been written.
    mutating func end(hasMore: Bool) throws {
        if isWalk, printer.format == .json { try StandardOutput.write(Array("]}\n".utf8)) }
        if hasMore, printer.format == .table {
            StandardError.write("crudctl: there are more records; --all prints every one\n")
        }
    }

    /// A record as a row: its id and the members of its item, or the item where that is no object.
    private static func row(_ record: JSONValue) -> JSONValue {
        guard case .object(let members) = record else { return record }
        var row: [(key: String, value: JSONValue)] = []
        for (key, value) in members where key != "revision" {
            guard key == "item", case .object(let properties) = value else {
                row.append((key, value))
                continue
            }
            // The record's own id keeps its column.
            for property in properties { row.append((property.key == "id" ? "item.id" : property.key, property.value)) }
        }
        return .object(row)
    }
}
