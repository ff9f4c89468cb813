import CRUDJSON
package import CRUDModel

/// JSON text that a person or an application hands in, to be put into a request as it is.
///
/// It must be checked first: text that is no single value could end the request's member early and add others.
package enum RawJSON {
    /// Throws unless `text` is one JSON value.
    ///
    /// - Parameter what: what the text is, for the message.
    /// - Throws: ``CRUDError/Code/parseError``, with line and column in the message.
    package static func check(_ text: [UInt8], what: String) throws(CRUDError) {
        var scanner = JSONScanner()
        do throws(JSONSyntaxError) {
            _ = try scanner.value(text.span)
            guard scanner.isAtEnd(text.span) else {
                throw JSONSyntaxError(reason: .trailingBytes, offset: scanner.position)
            }
        } catch {
            let before = text[..<error.offset]
            let line = before.count { $0 == UInt8(ascii: "\n") } + 1
            let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
            // Columns count characters as editors do: bytes that continue one do not count.
            let column = before[lineStart...].count { $0 & 0xC0 != 0x80 } + 1
            throw CRUDError(
                .parseError, "\(what) is not JSON: \(error.reason.rawValue) at line \(line), column \(column)")
        }
    }
}
