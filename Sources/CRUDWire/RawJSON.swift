import CRUDJSON
package import CRUDModel

/// JSON text from a person or an application that is copied into a request.
///
/// It must be checked first: text that is not exactly one value could end the request's member early and add others.
package enum RawJSON {
    /// Throws unless `text` is one JSON value.
    ///
    /// - Parameter what: what the text is, for the message.
    /// - Throws: ``CRUDError/Code/parseError``, with line and column in the message.
    package static func check(_ text: [UInt8], what: String) throws(CRUDError) {
        var scanner = JSONScanner()
        do throws(JSONSyntaxError) {
            try scanner.document(text.span)
        } catch {
            let before = text[..<error.offset]
            let line = before.count { $0 == UInt8(ascii: "\n") } + 1
            let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
            // Columns count code points, as editors do: continuation bytes do not count.
            let column = before[lineStart...].count { $0 & 0xC0 != 0x80 } + 1
            throw CRUDError(
                .parseError, "\(what) is not valid JSON: \(error.reason.rawValue) at line \(line), column \(column)")
        }
    }
}
