import CRUDModel
import CRUDQuery

@testable import CRUDStorage

/// A request that notes what becomes of it.
final class TestCompletion: RequestCompletion {
    let deadline: Duration
    var isWanted = true
    /// What has happened, in order: the reply, then `ended`.
    private(set) var events: [String] = []
    private(set) var error: CRUDError?
    /// Called with each event.
    private let note: (String) -> Void

    /// - Parameters:
    ///   - name: put before what is noted.
    ///   - log: gets the events of several requests.
    init(deadline: Duration = .seconds(10), note: @escaping (String) -> Void = { _ in }) {
        self.deadline = deadline
        self.note = note
    }

    func complete(with item: WorkItem, _ range: Range<Int>) {
        switch item {
        case let batch as MutationBatch: add(batch.outcomes[range].map(\.text).joined(separator: ", "))
        case let batch as ReadBatch:
            switch try? FoundTexts(batch, at: range.lowerBound) {
            case .records(let records): add(records.map { $0 ?? "none" }.joined(separator: ", "))
            case .count(let count): add("\(count) records")
            case .failed(let code): add(code.name)
            default: add("too long")
            }
        case let task as SearchTask: add(String(decoding: task.result, as: UTF8.self))
        case let deletion as BulkDelete: add("\(deletion.count) deleted")
        default: add("done")
        }
    }

    func fail(_ error: CRUDError, of item: WorkItem, _ range: Range<Int>, isOverdue: Bool) {
        self.error = error
        add(isOverdue ? "overdue: \(error.code.name)" : error.code.name)
    }

    func ended() { add("ended") }

    private func add(_ event: String) {
        events.append(event)
        note(event)
    }
}
