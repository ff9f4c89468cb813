import CRUDModel
import Testing

@testable import CRUDStorage

/// No record ever gets a revision that it had before, and none tells of others.
@Suite struct RevisionSourceTests {
    @Test func neverRepeatsARevision() {
        var revisions: Set<[UInt8]> = []
        // Several sources, as after restarts, which remember nothing.
        for _ in 0..<4 {
            var source = RevisionSource()
            for _ in 0..<25_000 { revisions.insert(source.next()) }
        }
        #expect(revisions.count == 100_000)
    }

    @Test func isShortAndHasPlainCharacters() {
        var source = RevisionSource()
        for _ in 0..<2000 {
            let revision = source.next()
            #expect(revision.count == 20 && revision.count <= Naming.maximumRevisionBytes)
            #expect(revision.allSatisfy { "0123456789abcdefghjkmnpqrstvwxyz".utf8.contains($0) })
        }
    }

    /// Each digit of each of them is any digit as often as any other: there is nothing that counts.
    @Test func everyDigitIsRandom() {
        var source = RevisionSource()
        let revisions = (0..<3200).map { _ in source.next() }
        for position in 0..<20 {
            let counts = Dictionary(grouping: revisions) { $0[position] }.mapValues(\.count)
            // Of 100 each, ten standard deviations.
            #expect(counts.count == 32 && counts.values.allSatisfy { (1...200).contains($0) }, "\(position): \(counts)")
            let repeated = zip(revisions, revisions.dropFirst()).count { $0[position] == $1[position] }
            #expect((1...200).contains(repeated), "\(position): \(repeated)")
        }
    }
}
