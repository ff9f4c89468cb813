import CRUDJSON
import CRUDWire

/// Formats a result.
struct ResultPrinter {
    let format: OutputFormat
    let terminal: Terminal

    /// The text to print for `result`, which is JSON.
    ///
    /// - Parameter list: the member with the elements, if the result is a list.
    func text(of result: [UInt8], list: StaticString?) throws -> [UInt8] {
        switch format {
        case .json: return result + [UInt8(ascii: "\n")]
        case .ndjson: return try lines(result, list).flatMap { $0 + [UInt8(ascii: "\n")] }
        case .yaml: return Array(YAMLWriter.text(of: try JSONValue(result)).utf8)
        case .table: return Array(TableWriter(terminal: terminal).text(of: try value(result, list)).utf8)
        }
    }

    private func lines(_ result: [UInt8], _ list: StaticString?) throws -> [[UInt8]] {
        let elements = list.flatMap { ResultObject(result)?.elements($0) } ?? [result[...]]
        return try elements.map { Array(try JSONValue(Array($0)).compact.utf8) }
    }

    private func value(_ result: [UInt8], _ list: StaticString?) throws -> JSONValue {
        let elements = list.flatMap { ResultObject(result)?.value($0) }
        return try JSONValue(elements.map { Array($0) } ?? result)
    }
}
