import CRUDModel
import Testing

@testable import CRUDStorage

/// No record ever gets a revision that it had before.
@Suite struct RevisionSourceTests {
    @Test func neverRepeatsARevision() {
        var revisions: Set<[UInt8]> = []
        // Several sources, as after restarts: nothing is remembered but the random part.
        for _ in 0..<4 {
            var source = RevisionSource()
            for _ in 0..<25_000 { revisions.insert(source.next()) }
        }
        #expect(revisions.count == 100_000)
    }

    /// The random part is of one length, so that it and the counter cannot be taken for another pair.
    @Test func textIsMadeOfSeedAndCounter() {
        func first(_ seed: UInt64) -> String {
            var source = RevisionSource(seed: seed)
            return String(decoding: source.next(), as: UTF8.self)
        }
        #expect(first(0) == "0000000000000-1")
        #expect(first(31) == "000000000000z-1")
        #expect(first(32) == "0000000000010-1")
        #expect(first(.max) == "fzzzzzzzzzzzz-1")
        var source = RevisionSource(seed: 0)
        var last: [UInt8] = []
        for _ in 0..<33 { last = source.next() }
        #expect(String(decoding: last, as: UTF8.self) == "0000000000000-11")
    }

    @Test func isShortAndHasPlainCharacters() {
        var source = RevisionSource(seed: .max)
        for _ in 0..<2000 {
            let revision = source.next()
            #expect(revision.count <= Naming.maximumRevisionBytes)
            #expect(revision.allSatisfy { "0123456789abcdefghjkmnpqrstvwxyz-".utf8.contains($0) })
        }
    }
}
