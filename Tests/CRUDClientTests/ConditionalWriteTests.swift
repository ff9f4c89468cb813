import CRUDModel
import Testing

@testable import CRUDClient

/// When a write that depends on a revision is sent again, and what remains unknown.
@Suite struct ConditionalWriteTests {
    private static let unknown = CRUDError(.outcomeUnknown, "lost")

    /// What the attempts have led to, and what the write as a whole is; nil: it has succeeded.
    private static let endings: [(attempts: [CRUDError.Code?], end: CRUDError.Code?)] = [
        ([nil], nil),
        ([.revisionMismatch], .revisionMismatch),
        ([.unavailable], .unavailable),
        ([.outcomeUnknown, nil], nil),
        ([.outcomeUnknown, .outcomeUnknown, nil], nil),
        // Nothing but the success of the same write shows that it was not applied before.
        ([.outcomeUnknown, .revisionMismatch], .outcomeUnknown),
        ([.outcomeUnknown, .recordNotFound], .outcomeUnknown),
        ([.outcomeUnknown, .timedOut], .outcomeUnknown),
        ([.outcomeUnknown, .unavailable, .unavailable, nil], nil),
        ([.outcomeUnknown, .unavailable, .revisionMismatch], .outcomeUnknown),
    ]

    @Test(arguments: endings)
    func endsAs(_ attempts: [CRUDError.Code?], _ end: CRUDError.Code?) async throws {
        var count = 0
        var code: CRUDError.Code?
        do {
            try await ConditionalWrite.send {
                defer { count += 1 }
                if let code = attempts[count] { throw CRUDError(code, "attempt \(count)") }
            }
        } catch let error as CRUDError {
            code = error.code
            // The first unknown outcome is the one that is told.
            if error.code == .outcomeUnknown { #expect(error.message == "attempt 0") }
        }
        #expect(code == end)
        #expect(count == attempts.count)
    }

    @Test func aCancelledTaskSendsNothingAgain() async throws {
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await ConditionalWrite.send { throw Self.unknown }
        }
        let error = await #expect(throws: CRUDError.self) { try await task.value }
        #expect(error?.code == .outcomeUnknown)
    }

    @Test func aDeadlineEndsIt() async throws {
        let error = await #expect(throws: CRUDError.self) {
            try await CRUDClient.withDeadline(in: .milliseconds(50)) {
                try await ConditionalWrite.send { throw Self.unknown }
            }
        }
        #expect(error?.code == .outcomeUnknown && error?.message == "lost")
    }
}
