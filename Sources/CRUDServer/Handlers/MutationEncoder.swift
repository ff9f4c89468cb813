import CRUDConfiguration
import CRUDFormats
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDWire

/// Turns operations, as they stand in their requests, into mutations.
final class MutationEncoder {
    private let loop: LoopState

    /// What every write touches. Not checked for exclusive access at run time: one thread uses it, and nothing that is
    /// called during an access comes back to it.
    private struct State: ~Copyable {
        var normalization = ItemNormalization()
        var revisions = RevisionSource()
    }

    @exclusivity(unchecked) private var state = State()

    init(_ loop: LoopState) {
        self.loop = loop
    }

    /// An item that is ready to be stored.
    struct Item {
        /// Its text in normal form; nil where it is as it stands in the request.
        var normalized: [UInt8]?
        /// Its stored form; nil where that is the text, or is still to be made.
        var encoded: [UInt8]?
        /// How long the stored form may be that is still to be made; 0: none is.
        var unencodedBytes = 0

        /// How many bytes it takes beside the request.
        var count: Int { (normalized?.count ?? 0) + (encoded?.count ?? 0) + unencodedBytes }
    }

    /// - Throws: `limit_exceeded` for an item that is too long.
    func check(_ operation: Operation) throws(CRUDError) {
        let maximum = loop.limits.itemBytes
        guard operation.kind != .patch, let item = operation.value, item.count > maximum else { return }
        throw .limit("item_bytes", maximum, "the item is longer than \(maximum) bytes")
    }

    /// Prepares the item of an operation, if it has one.
    ///
    /// - Throws: `unsupported` where the collection's format cannot hold it, or its backend cannot have it expire;
    ///   `limit_exceeded` where the collection's owner has reached a quota.
    func prepare(
        _ operation: Operation, _ call: borrowing Call, for collection: Collection
    ) throws(CRUDError) -> Item {
        if operation.expiry != nil, !collection.backend.capabilities.contains(.expiry) {
            throw CRUDError(.unsupported, "records of backend \(collection.backend.name) cannot expire")
        }
        if let refusal = loop.service.quotas.refusal(of: operation, in: collection),
            !call.session.authority.isExempt
        {
            throw refusal
        }
        guard operation.kind != .patch, let range = operation.value?.range else { return Item() }
        var item = Item(normalized: state.normalization.normalized(call.text.span.extracting(range)))
        guard !collection.codec.keepsText else { return item }
        guard range.count < LongItem.leastBytes else {
            item.unencodedBytes = collection.codec.maximumStoredBytes(ofItem: range.count)
            return item
        }
        var encoded: [UInt8] = []
        if let normalized = item.normalized {
            try collection.codec.encode(item: normalized.span, into: &encoded)
        } else {
            try collection.codec.encode(item: call.text.span.extracting(range), into: &encoded)
        }
        item.encoded = encoded
        return item
    }

    /// The clock by which the record of an operation expires, where that matters: read once for each request.
    func now(for operations: Operation...) -> Int64 { now(for: operations) }

    func now(for operations: some Sequence<Operation>) -> Int64 {
        operations.contains { $0.expiry != nil } ? CallContext.now : 0
    }

    /// The mutation that executes an operation, its bytes copied into the batch.
    ///
    /// - Parameters:
    ///   - now: see ``now(for:)``.
    ///   - budget: room for the items that the reply to a patch holds.
    func mutation(
        _ operation: Operation, _ item: Item, _ call: borrowing Call, in collection: Collection,
        _ batch: MutationBatch, now: Int64, _ budget: @autoclosure () -> ByteBudget
    ) -> Mutation {
        let kind: Mutation.Kind =
            switch operation.kind {
            case .create, .update, .upsert, .patch, .touch: .put
            case .delete: .remove
            case .check: .check
            }
        var mutation = Mutation(
            kind, in: collection.stored, id: call.withDecoded(operation.id) { batch.store($0) },
            precondition: precondition(of: operation, call, batch))
        if mutation.canCreate { mutation.creator = call.session.authority.creator }
        if kind == .put { mutation.revision = batch.store(state.revisions.next().span) }
        switch operation.expiry {
        case .after(let time): mutation.expiresAt = now + time
        case .at(let instant): mutation.expiresAt = instant
        case .never, nil: break
        }
        if operation.kind == .patch {
            mutation.transformation = patch(operation, call, in: collection, budget())
            return mutation
        }
        if operation.kind == .touch { mutation.transformation = Touch(in: collection.stored) }
        guard let value = operation.value else { return mutation }
        if item.unencodedBytes > 0 {
            mutation.transformation = LongItem(item.normalized ?? call.copy(value), in: collection.stored)
        } else if let text = item.normalized {
            store(text.span, encoded: item.encoded, &mutation, collection, batch)
        } else {
            store(call.text.span.extracting(value.range), encoded: item.encoded, &mutation, collection, batch)
        }
        return mutation
    }

    private func patch(
        _ operation: Operation, _ call: borrowing Call, in collection: Collection, _ budget: ByteBudget
    ) -> Patch {
        var fields = FieldOperationTexts()
        for part in operation.fieldOperations { fields.append(part.operation, part.object, of: call.text.span) }
        let patch: [UInt8]? = if let value = operation.value { call.copy(value) } else { nil }
        let limits = loop.limits
        return Patch(
            patch, fields, in: collection.stored,
            limits: Patch.Limits(
                itemBytes: limits.itemBytes, jsonDepth: limits.jsonDepth, frameBytes: limits.frameBytes),
            keepsExpiry: operation.expiry == nil, budget: budget)
    }

    private func store(
        _ text: Span<UInt8>, encoded: [UInt8]?, _ mutation: inout Mutation, _ collection: Collection,
        _ batch: MutationBatch
    ) {
        mutation.item = encoded.map { batch.store($0.span) } ?? batch.store(text)
        mutation.keys = collection.storeKeys(of: text, in: batch)
    }

    private func precondition(
        of operation: Operation, _ call: borrowing Call, _ batch: MutationBatch
    ) -> Mutation.Precondition {
        if let expected = operation.ifRevision {
            return expected.kind == .null ? .absent : .revision(call.withDecoded(expected) { batch.store($0) })
        }
        return switch operation.kind {
        case .create: .absent
        case .upsert: .any
        case .patch where operation.upserts: .any
        case .update, .delete, .patch, .touch, .check: .present
        }
    }
}
