import CRUDConfiguration
import CRUDModel
import CRUDStorage
import CRUDWire

/// `record.create`, `record.update`, `record.upsert`, `record.patch`, `record.touch` and `record.delete`: each adds a
/// mutation to what its backend gets at the end of the iteration.
final class RecordWriteHandler {
    private let loop: LoopState
    private let encoder: MutationEncoder

    init(_ loop: LoopState, _ encoder: MutationEncoder) {
        self.loop = loop
        self.encoder = encoder
    }

    func execute(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        let maximumDepth = loop.limits.jsonDepth
        guard let operation = try Operation(call.request, of: call.text.span, maximumDepth: maximumDepth) else {
            return
        }
        try encoder.check(operation)
        let item = try encoder.prepare(operation, call, for: collection)
        let client = collection.client
        let isLong = collection.takesLong(isPatch: operation.kind == .patch, contentBytes: operation.contentBytes)
        let batch = client.pendingMutations(
            of: call.session.number, transforms: isLong || operation.transforms)
        let mutation = encoder.mutation(
            operation, item, call, in: collection, batch, now: encoder.now(for: operation), call.budget(loop.limits))
        let pending = PendingWrite(
            call, isLong ? .slicedWrite : .write, collection, operation,
            replyBytes: operation.kind == .patch ? loop.limits.itemBytes : 0,
            otherBytes: item.count + (isLong ? loop.limits.longWriteBytes : 0))
        pending.start()
        client.append(mutation, to: batch, for: pending)
    }
}

/// A write of one record in flight.
private final class PendingWrite: PendingRequest {
    private let operation: OperationReply

    init(
        _ call: borrowing Call, _ kind: RequestKind, _ collection: Collection, _ operation: Operation,
        replyBytes: Int, otherBytes: Int
    ) {
        self.operation = OperationReply(to: operation)
        super.init(
            call, kind, on: collection, replyBytes: replyBytes, chargedBytes: call.chargedBytes + otherBytes)
    }

    override func reply(with result: WorkResult) {
        guard case .written(let batch, let range) = result, let collection else { return super.reply(with: result) }
        reply { output throws(CRUDError) in
            try operation.append(range.lowerBound, of: batch, collection.backend, to: &output)
        }
    }
}
