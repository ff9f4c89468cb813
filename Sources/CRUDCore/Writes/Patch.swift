package import CRUDConfiguration
import CRUDJSON
package import CRUDModel
package import CRUDPluginHost

/// A JSON Merge Patch (RFC 7396) on its way to a record.
package final class Patch: ItemTransformation {
    private let patch: [UInt8]
    private let codec: Codec
    private let limits: Configuration.Limits
    private let budget: ReplyBudget
    /// What an attempt before this one has taken of the budget.
    // Used on the one thread that applies the patch.
    private nonisolated(unsafe) var taken = 0

    /// - Parameters:
    ///   - patch: JSON text.
    ///   - codec: of the collection.
    ///   - budget: of the answer that will show the item.
    package init(_ patch: [UInt8], codec: Codec, limits: Configuration.Limits, budget: ReplyBudget) {
        self.patch = patch
        self.codec = codec
        self.limits = limits
        self.budget = budget
    }

    /// - Throws: `corrupt` where the item cannot be decoded, `limit_exceeded` for a result that is longer or nests deeper
    ///   than an item may, or does not fit the answer, `unsupported` for one that the format cannot hold.
    package func transform(_ stored: [UInt8]?) throws(CRUDError) -> TransformedItem {
        let item = try text(of: stored)
        let patch = patch
        var patched: [UInt8]
        let depth: Int
        do throws(JSONSyntaxError) {
            patched = try MergePatch.apply(patch.span, to: item.span)
            var normalization = ItemNormalization()
            if let normalized = normalization.normalized(patched.span) { patched = normalized }
            var scanner = JSONScanner()
            depth = try scanner.value(patched.span).depth
        } catch {
            throw CRUDError(.corrupt, "the stored item is no JSON")
        }
        guard patched.count <= limits.itemBytes else { throw exceeded("item_bytes", limits.itemBytes) }
        guard depth <= limits.jsonDepth else { throw exceeded("json_depth", limits.jsonDepth) }
        budget.giveBack(taken)
        taken = 0
        guard budget.take(patched.count) else { throw exceeded("frame_bytes", limits.frameBytes) }
        taken = patched.count
        guard !codec.keepsText else { return TransformedItem(stored: patched) }
        var encoded: [UInt8] = []
        try codec.encode(item: patched.span, into: &encoded)
        return TransformedItem(stored: encoded, shown: patched)
    }

    /// The JSON text of what is stored; a record that is not there starts as `{}`.
    private func text(of stored: [UInt8]?) throws(CRUDError) -> [UInt8] {
        guard let stored else { return Array("{}".utf8) }
        guard !codec.keepsText else { return stored }
        var text: [UInt8] = []
        try codec.decode(stored: stored.span, into: &text, maximumBytes: limits.frameBytes)
        return text
    }

    private func exceeded(_ limit: String, _ maximum: Int) -> CRUDError {
        CRUDError(
            .limitExceeded, "the patched item would exceed `\(limit)`", details: .init(limit: limit, maximum: maximum))
    }
}
