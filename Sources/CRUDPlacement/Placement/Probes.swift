import CRUDModel
package import CRUDStorage
import CRUDThreads
import Synchronization

/// Finds out what a plan has to know of storage: all backends at once, with one deadline. A backend that does not reply
/// in time leaves its questions open, and refuses no others.
package enum Probes {
    /// How long the backends may take together.
    private static let timeout = Duration.seconds(10)

    /// - Parameter backends: by name.
    package static func facts(for questions: [Plan.Question], _ backends: [String: Backend]) -> Plan.Facts {
        let deadline = ContinuousClock.now + timeout
        let answers = Answers()
        let ends = Dictionary(grouping: questions, by: \.place.backend).compactMap { name, questions in
            backends[name].flatMap { answers.begin(questions, $0, deadline) }
        }
        for end in ends { _ = end.wait(atMost: deadline - .now) }
        return answers.facts
    }

    private final class Answers: Sendable {
        private let state = Mutex(Plan.Facts())

        var facts: Plan.Facts { state.withLock { $0 } }

        /// Asks one backend, on a thread of its own: it may hang.
        func begin(
            _ questions: [Plan.Question], _ backend: Backend, _ deadline: ContinuousClock.Instant
        ) -> OneShot<Bool>? {
            let end = OneShot<Bool>()
            let thread = try? Thread(named: "probe:\(backend.name)") { [self] in
                for question in questions where deadline > .now { answer(question, backend, deadline - .now) }
                end.resolve(true)
            }
            return thread.map { _ in end }
        }

        private func answer(_ question: Plan.Question, _ backend: Backend, _ timeout: Duration) {
            let (name, place) = (question.name, question.place)
            switch question.subject {
            case .occupancy:
                guard let hasRecords = try? backend.hasRecords(name, place.format, within: timeout) else { return }
                let count = hasRecords ? try? backend.count(name, place.format, within: timeout) : nil
                state.withLock { $0.occupancy[name] = hasRecords ? .records(count) : .empty }
            case .obstacle:
                let found = try? backend.recordsInTheWay(of: name, to: place, except: question.known)
                guard let obstacle = found else { return }
                state.withLock { $0.obstacles[name] = obstacle }
            }
        }
    }
}
