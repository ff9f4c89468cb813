import CRUDFormats
package import CRUDJSON
package import CRUDModel

/// A patch of a record: a JSON Merge Patch (RFC 7396), then field operations.
package final class Patch: ItemTransformation {
    /// What the patched item is held to.
    package struct Limits: Sendable {
        package var itemBytes: Int
        package var jsonDepth: Int
        package var frameBytes: Int

        package init(itemBytes: Int, jsonDepth: Int, frameBytes: Int) {
            self.itemBytes = itemBytes
            self.jsonDepth = jsonDepth
            self.frameBytes = frameBytes
        }
    }

    private let patch: [UInt8]?
    private let operations: FieldOperationTexts
    private let collection: BackendCollection
    private let limits: Limits
    package let keepsExpiry: Bool
    package var byteCount: Int { (patch?.count ?? 0) + operations.text.count }
    package func takesLong(of item: [UInt8]?) -> Bool { collection.takesLong(of: item, byteCount) }
    private let budget: ByteBudget
    /// What an attempt before this one has taken of the budget.
    // Used by the one thread that applies the patch at the time.
    private nonisolated(unsafe) var taken = 0

    /// - Parameters:
    ///   - patch: JSON text; nil: there are field operations only.
    ///   - keepsExpiry: whether a record that expires still does; else the mutation says it.
    ///   - budget: of the reply that will show the item.
    package init(
        _ patch: [UInt8]?, _ operations: FieldOperationTexts = FieldOperationTexts(),
        in collection: BackendCollection, limits: Limits, keepsExpiry: Bool = true, budget: ByteBudget
    ) {
        self.patch = patch
        self.operations = operations
        self.collection = collection
        self.limits = limits
        self.keepsExpiry = keepsExpiry
        self.budget = budget
    }

    /// - Throws: `corrupt` where the item cannot be decoded, `limit_exceeded` for a result that is longer or nests
    ///   deeper than an item may, or does not fit the reply, `unsupported` for one that the format cannot hold, or
    ///   where a field operation does not suit the item.
    package func transform(_ stored: [UInt8]?, _ work: inout Work) throws(CRUDError) -> TransformedItem {
        budget.giveBack(taken)
        taken = 0
        guard !budget.isExceeded else { throw exceeded("frame_bytes", limits.frameBytes) }
        let patched = try apply(to: try text(of: stored, &work), &work)
        guard budget.take(itemOf: patched.count) else { throw exceeded("frame_bytes", limits.frameBytes) }
        taken = patched.count
        let keys = collection.keys(of: patched.span, &work)
        if work.isStopped { throw .stopped }
        guard !collection.codec.keepsText else { return TransformedItem(stored: patched, keys: keys) }
        var encoded: [UInt8] = []
        try collection.codec.encode(item: patched.span, into: &encoded, &work)
        return TransformedItem(stored: encoded, shown: patched, keys: keys)
    }

    private func apply(to item: [UInt8], _ work: inout Work) throws(CRUDError) -> [UInt8] {
        let patched = try withOperations(try merged(with: item, &work), &work)
        var scanner = JSONScanner()
        let depth: Int
        do throws(JSONSyntaxError) {
            depth = try scanner.value(patched.span, &work).depth
        } catch {
            throw work.isStopped ? .stopped : Self.corrupt
        }
        guard patched.count <= limits.itemBytes else { throw exceeded("item_bytes", limits.itemBytes) }
        guard depth <= limits.jsonDepth else { throw exceeded("json_depth", limits.jsonDepth) }
        return patched
    }

    private func merged(with item: [UInt8], _ work: inout Work) throws(CRUDError) -> [UInt8] {
        guard let patch else { return item }
        do throws(JSONSyntaxError) {
            return Self.normalized(try MergePatch.apply(patch.span, to: item.span, &work), &work)
        } catch {
            throw work.isStopped ? .stopped : Self.corrupt
        }
    }

    private func withOperations(_ item: [UInt8], _ work: inout Work) throws(CRUDError) -> [UInt8] {
        let operations = operations
        guard !operations.isEmpty else { return item }
        var fields = try FieldPatch(operations.parts, of: operations.text.span, maximumDepth: limits.jsonDepth)
        return Self.normalized(try fields.apply(to: item.span, operations.text.span, &work), &work)
    }

    private static func normalized(_ item: [UInt8], _ work: inout Work) -> [UInt8] {
        var normalization = ItemNormalization()
        return normalization.normalized(item.span, &work) ?? item
    }

    private static let corrupt = CRUDError(.corrupt, "the stored item is not valid JSON")

    /// The JSON text of a stored item; a record that does not exist starts as `{}`.
    private func text(of stored: [UInt8]?, _ work: inout Work) throws(CRUDError) -> [UInt8] {
        guard let stored else { return Array("{}".utf8) }
        guard !collection.codec.keepsText else { return stored }
        var text: [UInt8] = []
        try collection.codec.decode(stored: stored.span, into: &text, maximumBytes: limits.frameBytes, &work)
        return text
    }

    private func exceeded(_ limit: String, _ maximum: Int) -> CRUDError {
        CRUDError(
            .limitExceeded, "the patched item would exceed `\(limit)`", details: .init(limit: limit, maximum: maximum))
    }
}

extension BackendCollection {
    /// The index keys of an item.
    ///
    /// - Parameter item: JSON text that has been found valid.
    func keys(of item: Span<UInt8>) -> IndexKeys {
        var work = Work()
        return keys(of: item, &work)
    }

    /// As ``keys(of:)``; none where the work is stopped.
    func keys(of item: Span<UInt8>, _ work: inout Work) -> IndexKeys {
        let numbered = numberedLayout
        guard !numbered.layout.indexPaths.isEmpty else { return .none }
        var keys = RecordKeys(numbered.layout.indexPaths)
        return keys.keys(of: item, &work).map { IndexKeys($0, layout: numbered.number) } ?? .none
    }
}
