import CRUDModel
import Testing

@testable import CRUDStorage

/// What a reader gets of a place in a feed tells nobody but the daemon where that is.
@Suite struct SealedCursorTests {
    private static let identity: UInt64 = 0x0123_4567_89AB_CDEF

    @Test(arguments: [(0, 0), (1, 0), (7, 1 << 40), (.max, .max)] as [(UInt64, UInt64)])
    func isOpenedByItsHistoryAlone(sequence: UInt64, base: UInt64) throws {
        let cursor = ChangesCursor(identity: Self.identity, sequence: sequence, base: base)
        let sealed = try SealedCursor(text: SealedCursor(cursor).text)
        #expect(sealed.opened(identity: Self.identity) == cursor)
        for other in [0, 1, Self.identity + 1, ~Self.identity] { #expect(sealed.opened(identity: other) == nil) }
    }

    /// Whoever could change the number in it could learn by trial how high the last one is.
    @Test func noBitOfItCanBeChanged() throws {
        let text = SealedCursor(ChangesCursor(identity: Self.identity, sequence: 1000)).text
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for index in text.indices {
            for digit in digits where digit != text[index] {
                var forged = text
                forged[index] = digit
                let opened = try? SealedCursor(text: forged).opened(identity: Self.identity)
                #expect(opened == nil)
            }
        }
    }

    @Test(arguments: ["", "Y2Y", "c3M", "start", "\u{0}", String(repeating: "A", count: 56)])
    func anythingElseIsNoCursor(text: String) {
        let error = #expect(throws: CRUDError.self) { try SealedCursor(text: Array(text.utf8)) }
        #expect(error?.code == .invalidQuery)
    }

    /// Behind the two letters, texts of one place and of neighbouring ones have no more in common than any two texts.
    @Test func textsHaveNothingInCommon() {
        let texts = (0..<64).map { SealedCursor(ChangesCursor(identity: Self.identity, sequence: $0 / 2)).text }
        for (index, text) in texts.enumerated() {
            for other in texts[..<index] {
                // One in 64 of 53 digits; eight of them agree once in a million pairs.
                #expect(zip(text, other).dropFirst(3).count { $0 == $1 } < 12)
            }
        }
    }
}
