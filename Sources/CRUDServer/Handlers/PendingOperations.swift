import CRUDEventLoop
import CRUDModel
import CRUDStorage

/// The operations of a `record.batch` that one backend executes. The last of several parts replies.
final class PendingOperations: PendingRequest {
    private let results: BatchResults
    /// The positions of the operations in the request.
    private let positions: [Int]
    override var otherCollections: [Collection] { others }
    private let others: [Collection]
    override var weight: Int { positions.count }
    override var recordCount: Int { results.outcomes.count }

    init(
        _ call: borrowing Call, _ kind: RequestKind, _ collections: [Collection], _ results: BatchResults,
        _ positions: [Int],
        chargedBytes: Int
    ) {
        self.results = results
        self.positions = positions
        others = Array(collections.dropFirst())
        super.init(call, kind, on: collections[0], chargedBytes: chargedBytes)
    }

    override func reply(with result: WorkResult) {
        guard case .written(let batch, let range) = result, let collection else { return super.reply(with: result) }
        for (position, index) in zip(positions, range) {
            results.outcomes[position] = .executed(batch, index, collection.backend)
        }
        replyIfLast()
    }

    /// - Parameter isOverdue: where this is the only part, the request as a whole has waited too long.
    override func reply(with error: CRUDError, isOverdue: Bool) {
        if results.isAtomic || (isOverdue && results.isOnePart) { return reply(with: error) }
        for position in positions { results.outcomes[position] = .failed(naming(error)) }
        replyIfLast()
    }

    private func replyIfLast() {
        guard results.partEnded() else {
            // What has come of this part is kept until the last one replies.
            results.keptBytes += chargedBytes
            return session.charge(requests: 0, bytes: chargedBytes)
        }
        session.charge(requests: 0, bytes: -results.keptBytes)
        reply { output throws(CRUDError) in try results.append(to: &output) }
        // A batch holds the requests that wait for it: this breaks the reference cycle.
        results.outcomes.removeAll()
    }
}

/// What has become of each operation of a `record.batch`.
final class BatchResults {
    enum Outcome {
        case unknown
        /// Its mutation in this batch has an outcome.
        case executed(MutationBatch, Int, Backend)
        case failed(CRUDError)
    }

    /// Whether the request is atomic: the first error of an operation is that of the request.
    let isAtomic: Bool
    private let replies: [OperationReply]
    /// In the order of the request.
    var outcomes: [Outcome]
    /// How many backends have operations, and how many of those are not done.
    private var parts = 0
    private var partsInFlight = 0
    /// What the session is charged for the outcomes of those that are done.
    var keptBytes = 0

    init(isAtomic: Bool, _ replies: [OperationReply]) {
        self.isAtomic = isAtomic
        self.replies = replies
        outcomes = Array(repeating: .unknown, count: replies.count)
    }

    func expectParts(_ count: Int) {
        parts = count
        partsInFlight = count
    }

    var isOnePart: Bool { parts == 1 }

    /// Counts a backend that is done; true if it was the last.
    func partEnded() -> Bool {
        partsInFlight -= 1
        return partsInFlight == 0
    }

    /// Appends the result of the request.
    ///
    /// - Throws: the first error of an operation, where the request is atomic.
    func append(to output: inout StreamBuffer) throws(CRUDError) {
        output.append(#"{"results":["#)
        for (position, outcome) in outcomes.enumerated() {
            if position > 0 { output.append(UInt8(ascii: ",")) }
            let start = output.count
            do throws(CRUDError) {
                output.append(#"{"result":"#)
                switch outcome {
                case .executed(let batch, let index, let backend):
                    try replies[position].append(index, of: batch, backend, to: &output)
                case .failed(let error): throw error
                case .unknown: throw CRUDError(.internalError, "the operation was not executed")
                }
            } catch {
                if isAtomic { throw error.at(position) }
                output.truncate(to: start)
                output.append(#"{"error":"#)
                output.append(error)
            }
            output.append(UInt8(ascii: "}"))
        }
        output.append("]}")
    }
}
