import CRUDModel
import Testing

@Suite struct CRUDErrorTests {
    @Test func everyCodeHasANameOfItsOwn() {
        let all = CRUDError.Code.all
        #expect(all.count == 19)
        #expect(Set(all.map(\.code)).count == all.count)
        #expect(Set(all.map(\.name)).count == all.count)
        for (code, name) in all { #expect(code.name == name) }
    }

    /// `retryable: true` guarantees that nothing was applied; only these two codes may have it.
    @Test func onlyTwoMayBeTriedAgain() {
        #expect(CRUDError.Code.all.map(\.code).filter(\.isRetryable) == [.unavailable, .noSpace])
        #expect(CRUDError(.noSpace, "full").isRetryable)
        #expect(!CRUDError(.outcomeUnknown, "lost").isRetryable)
    }

    /// A client's own code, which no daemon sends.
    @Test func aTimeOutHasACodeOfItsOwn() {
        #expect(CRUDError.Code.timedOut.name == "timed_out")
        #expect(CRUDError.Code.timedOut.isRetryable)
        #expect(!CRUDError.Code.all.contains { $0.code == .timedOut || $0.name == "timed_out" })
    }

    @Test func aCodeOfALaterVersionIsKept() {
        let code = CRUDError.Code(rawValue: -32099)
        #expect(code.name == "error_-32099")
        #expect(!code.isRetryable)
        #expect(code != .internalError)
    }

    @Test func describesItselfAndItsCause() {
        let inner = CRUDError(.unavailable, "the connection is closed")
        let outer = CRUDError(.outcomeUnknown, "no reply arrived", cause: inner)
        #expect("\(inner)" == "unavailable: the connection is closed")
        #expect("\(outer)" == "outcome_unknown: no reply arrived (unavailable: the connection is closed)")
    }

    @Test func detailsAreComparedByAllTheyHold() {
        #expect(CRUDError.Details() == CRUDError.Details())
        #expect(CRUDError.Details(member: "id") != CRUDError.Details())
        #expect(CRUDError.Details(column: 1) != CRUDError.Details(column: 2))
    }

    @Test func theVersionIsASemanticOne() {
        let numbers = CRUDVersion.current.split(separator: ".", omittingEmptySubsequences: false)
        #expect(numbers.count == 3)
        #expect(numbers.allSatisfy { Int($0).map { $0 >= 0 } == true })
    }
}
