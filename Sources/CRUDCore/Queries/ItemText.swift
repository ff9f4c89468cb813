import CRUDJSON
import CRUDModel

/// Makes sure that a stored item is JSON before it gets into an answer: somebody may have edited the storage by hand.
struct ItemText: ~Copyable {
    private var scanner = JSONScanner()

    /// - Throws: JSONSyntaxError unless `item` is one JSON value.
    mutating func check(_ item: Span<UInt8>) throws(JSONSyntaxError) {
        scanner.reset()
        _ = try scanner.value(item)
        guard scanner.isAtEnd(item) else {
            throw JSONSyntaxError(reason: .trailingBytes, offset: scanner.position)
        }
    }
}

extension CRUDError {
    /// The item of a record that a search has come upon is no JSON.
    static func corruptItem(id: [UInt8]) -> CRUDError {
        CRUDError(.corrupt, "the stored item of record \(String(decoding: id, as: UTF8.self)) is no JSON")
    }
}
