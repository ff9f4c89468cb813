import CRUDEventLoop
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDWire

/// What the reply to an operation depends on.
struct OperationReply {
    private let kind: Operation.Kind
    private let upserts: Bool

    init(to operation: Operation) {
        kind = operation.kind
        upserts = operation.upserts
    }

    /// Appends the result of the operation's mutation.
    ///
    /// - Throws: the error instead of it; nothing has been appended then.
    func append(
        _ position: Int, of batch: MutationBatch, _ backend: Backend, to output: inout StreamBuffer
    ) throws(CRUDError) {
        let id = batch.arena.bytes(batch.mutations[position].id)
        let collection = batch.mutations[position].collection.name
        switch batch.outcomes[position] {
        case .applied(let replaced): append(batch.mutations[position], replaced, position, batch, &output)
        case .exists: throw .recordExists(id, in: collection)
        case .notFound:
            guard kind != .upsert, !upserts else { throw .revisionMismatch(id, in: collection, current: nil) }
            throw .recordNotFound(id, in: collection)
        case .mismatch(let current):
            throw .revisionMismatch(id, in: collection, current: String(decoding: current, as: UTF8.self))
        case .failed(let status): throw backend.error(status: status).about(id, in: collection)
        case .refused(let error): throw error.about(id, in: collection)
        }
    }

    private func append(
        _ mutation: Mutation, _ replaced: Bool, _ position: Int, _ batch: MutationBatch, _ output: inout StreamBuffer
    ) {
        guard mutation.kind == .put else { return output.append("{}") }
        output.append(#"{"revision":""#)
        output.append(batch.arena.bytes(mutation.revision))
        output.append("\"")
        if kind == .upsert { output.append(replaced ? #","created":false"# : #","created":true"#) }
        if kind == .patch {
            output.append(#","item":"#)
            output.append(batch.shownItem(at: position))
        }
        output.append("}")
    }
}
