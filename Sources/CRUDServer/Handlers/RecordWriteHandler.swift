import CRUDConfiguration
import CRUDModel
import CRUDStorage
import CRUDWire

/// `record.create`, `record.update`, `record.upsert`, `record.patch` and `record.delete`: each adds a mutation to what
/// its backend gets at the end of the iteration.
final class RecordWriteHandler {
    private let loop: LoopState
    private let encoder: MutationEncoder

    init(_ loop: LoopState, _ encoder: MutationEncoder) {
        self.loop = loop
        self.encoder = encoder
    }

    func execute(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        guard let operation = try Operation(call.request, of: call.text.span) else { return }
        try encoder.check(operation)
        let item = try encoder.prepare(operation, call, for: collection)
        let client = collection.client
        let mutation = encoder.mutation(
            operation, item, call, in: collection, client.pendingMutations, now: encoder.now(for: operation),
            call.budget(loop.limits))
        let pending = PendingWrite(
            call, collection, operation, item, replyBytes: operation.kind == .patch ? loop.limits.itemBytes : 0)
        pending.start()
        client.append(mutation, for: pending)
    }
}

/// A write of one record in flight.
private final class PendingWrite: PendingRequest {
    private let result: OperationReply

    init(
        _ call: borrowing Call, _ collection: Collection, _ operation: Operation, _ item: MutationEncoder.Item,
        replyBytes: Int
    ) {
        result = OperationReply(to: operation)
        super.init(
            call, .write, on: collection, replyBytes: replyBytes, chargedBytes: call.chargedBytes + item.count)
    }

    override func reply(with item: WorkItem, _ range: Range<Int>) {
        guard let batch = item as? MutationBatch, let collection else { return }
        reply { output throws(CRUDError) in
            try result.append(range.lowerBound, of: batch, collection.backend, to: &output)
        }
    }
}
