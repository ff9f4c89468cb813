import CRUDTestSupport
import Synchronization

/// One record that many sessions read and write, and what each of them may see of it.
///
/// Writes are numbered and made one after the other. A read must show the state after a write no older than those that
/// had been acknowledged, or that its session had seen, before it began.
final class HotRecord: Sendable {
    let collection: String
    static let id = "hot"
    private let writing = Mutex(())
    private let history = Mutex(History())

    private struct History {
        /// Whether there may be no record after each write.
        var maybeAbsent = [true]
        var acknowledged = 0
    }

    enum Outcome { case acknowledged, refused, unknown }

    init(_ collection: String) {
        self.collection = collection
    }

    /// Makes a write; `send` gets its number.
    func write(deletes: Bool, _ send: (Int) throws -> Outcome) throws {
        try writing.withLock { _ in
            let number = history.withLock { history in
                history.maybeAbsent.append(deletes)
                return history.maybeAbsent.count - 1
            }
            let outcome = try send(number)
            history.withLock { history in
                switch outcome {
                case .acknowledged: history.acknowledged = number
                case .refused: history.maybeAbsent[number] = history.maybeAbsent[number - 1]
                case .unknown: history.maybeAbsent[number] = deletes || history.maybeAbsent[number - 1]
                }
            }
        }
    }

    /// The oldest state that a read may show that begins now, in a session that has seen `seen`.
    func oldest(_ seen: Int) -> Int { max(seen, history.withLock(\.acknowledged)) }

    /// Checks what a read has shown.
    ///
    /// - Parameter number: of the write that left the record; nil: there was none.
    /// - Returns: the oldest state that this may have been.
    func check(_ number: Int?, oldest: Int) throws -> Int {
        try history.withLock { history in
            let newest = history.maybeAbsent.count - 1
            guard let number else {
                if let state = (oldest...newest).first(where: { history.maybeAbsent[$0] }) { return state }
                throw Failure("\(collection): no record, though there was one in all of \(oldest)…\(newest)")
            }
            guard number >= oldest, number <= newest else {
                throw Failure("\(collection): state \(number), not \(oldest)…\(newest)")
            }
            return number
        }
    }
}
