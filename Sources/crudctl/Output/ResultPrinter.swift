import CRUDJSON
import CRUDWire

/// Formats results.
struct ResultPrinter {
    let format: OutputFormat
    let terminal: Terminal

    /// How members are written in a table.
    var notations: TableWriter.Notations = [:]
    /// Whether a table has lines of the members of objects in the result.
    var expandsObjects = false

    /// Prints a result.
    ///
    /// - Parameter list: the member with the elements, if the result is a list.
    func show(_ result: [UInt8], list: StaticString?) throws {
        let output = self.output
        let isWhole = try write(result, list: list, to: output)
        if let list, format == .table, ResultObject(result)?.elements(list)?.isEmpty == true {
            try noteEmptiness(list, to: output)
        }
        try output.end()
        if !isWhole { Self.noteMissingColumns() }
    }

    /// The output for what is written in this format.
    var output: OutputBuffer {
        switch format {
        // A table has its own escapes, and bold headings.
        case .table: OutputBuffer { try StandardOutput.page($0, isComposed: true) }
        case .json, .ndjson, .yaml: OutputBuffer { try StandardOutput.page($0, isComposed: false) }
        }
    }

    /// Says on a terminal, where nothing might be a mistake, that there is nothing.
    func noteEmptiness(_ what: StaticString, to output: OutputBuffer) throws {
        if terminal.isTerminal { try output.append("(0 \(what))\n") }
    }

    static func noteMissingColumns() {
        StandardError.write("crudctl: there are more columns; use -o json to print them\n")
    }

    /// Writes a result, which is JSON.
    ///
    /// - Returns: whether that is all of it.
    func write(_ result: [UInt8], list: StaticString?, to output: OutputBuffer) throws -> Bool {
        var scanner = JSONScanner()
        let whole = try scanner.value(result.span)
        let elements = list.flatMap { ResultObject(result)?.value($0) }
        return try write(
            elements.map { JSONSlice(start: $0.startIndex, end: $0.endIndex, kind: .array) } ?? whole, of: whole,
            result.span, to: output)
    }

    private func write(
        _ value: JSONSlice, of whole: JSONSlice, _ text: Span<UInt8>, to output: OutputBuffer
    ) throws -> Bool {
        switch format {
        case .json:
            try output.append(text)
            try output.append("\n")
        case .ndjson where value == whole: try writeLine(whole, text, to: output)
        case .ndjson: try value.forEachElement(text) { try writeLine($0, text, to: output) }
        case .yaml: try YAMLWriter(output: output).write(whole, text)
        case .table:
            var table = TableWriter(terminal: terminal, output: output, notations: notations)
            table.expandsObjects = expandsObjects
            return try !table.write(value, text)
        }
        return true
    }

    private func writeLine(_ value: JSONSlice, _ text: Span<UInt8>, to output: OutputBuffer) throws {
        try JSONPrinter().print(value, text) { try output.append($0) }
        try output.append("\n")
    }
}
