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
        switch WorkResult(of: item, range) {
        case .written(let batch, let range): add(batch.outcomes[range].map(\.text).joined(separator: ", "))
        case .read(let batch, let position):
            switch try? FoundTexts(batch, at: position) {
            case .records(let records): add(records.map { $0 ?? "none" }.joined(separator: ", "))
            case .count(let count): add("\(count) records")
            case .failed(let code): add(code.name)
            default: add("too long")
            }
        case .found(let task): add(String(decoding: task.result, as: UTF8.self))
        case .deleted(let deletion): add("\(deletion.count) deleted")
        case .changes, .size, .dropped, .done: add("done")
        }
    }

    func fail(_ error: CRUDError, begun: Duration?, isOverdue: Bool) {
        self.error = error
        add(isOverdue ? "overdue: \(error.code.name)" : error.code.name)
    }

    func ended() { add("ended") }

    private func add(_ event: String) {
        events.append(event)
        note(event)
    }
}
