import CRUDClient
import CRUDJSON
import CRUDModel

/// What the daemon refuses before it does anything, with the limits that it has unless it is configured otherwise.
enum Check {
    private static let itemBytes = 4 << 20
    private static let depth = 128
    private static let batch = 1000
    static let queryLimit = 10_000

    static func collection(_ name: String) throws(CRUDError) {
        try text(name, maximum: Naming.maximumCollectionNameBytes, "collection")
    }

    static func id(_ id: String, _ member: String = "id") throws(CRUDError) {
        try text(id, maximum: Naming.maximumIDBytes, member)
    }

    /// The elements of a batch or of `ids`.
    static func count(_ count: Int, _ member: String) throws(CRUDError) {
        guard count > batch else { return }
        throw limit("batch", batch, "`\(member)` has more than \(batch) elements")
    }

    static func item(_ item: EncodedItem) throws(CRUDError) {
        guard item.bytes.count <= itemBytes else {
            throw limit("item_bytes", itemBytes, "the item is longer than \(itemBytes) bytes")
        }
        var scanner = JSONScanner()
        do throws(JSONSyntaxError) {
            guard try scanner.value(item.bytes.span).depth > depth else { return }
        } catch {
            throw CRUDError(.parseError, "the item is not JSON")
        }
        throw limit("json_depth", depth, "the item nests deeper than \(depth)")
    }

    static func operation(_ operation: RecordOperation, in collection: String) throws(CRUDError) {
        try Self.collection(operation.collection ?? collection)
        try id(operation.id)
        switch operation.action {
        case .create(let item), .update(let item, _), .upsert(let item, _), .patch(let item, _, _): try Self.item(item)
        case .delete, .check: break
        }
    }

    static func operations(_ operations: [RecordOperation], in collection: String) throws(CRUDError) {
        try count(operations.count, "operations")
        for (index, operation) in operations.enumerated() {
            do throws(CRUDError) {
                try Self.operation(operation, in: collection)
            } catch {
                throw error.at(index)
            }
        }
    }

    private static func text(_ text: String, maximum: Int, _ member: String) throws(CRUDError) {
        let bytes = Array(text.utf8)
        guard let fault = Naming.fault(bytes.span, maximum: maximum) else { return }
        throw CRUDError(.invalidParams, "`\(member)` \(fault)", details: CRUDError.Details(member: member))
    }

    static func limit(_ name: String, _ maximum: Int, _ message: String) -> CRUDError {
        CRUDError(.limitExceeded, message, details: CRUDError.Details(limit: name, maximum: maximum))
    }
}
