import CRUDJSON
package import CRUDModel

/// A place in the feed of a collection's changes.
///
/// To a client it is opaque text: base64 of two letters, and of three numbers, the most significant byte first.
package struct ChangesCursor: Sendable, Equatable {
    /// Of the history that it is a place of; 0: the collection was not there.
    package var identity: UInt64
    /// Everything up to this sequence number has been seen.
    package var sequence: UInt64
    /// What was removed up to this sequence number has never been seen: that was before the beginning.
    package var base: UInt64

    /// Where a page begins.
    package enum Start: Sendable {
        case beginning, now
        case cursor(ChangesCursor)
    }

    private static let letters = Array("cf".utf8)

    package init(identity: UInt64 = 0, sequence: UInt64 = 0, base: UInt64 = 0) {
        self.identity = identity
        self.sequence = sequence
        self.base = base
    }

    /// - Throws: `invalid_query` for a text that is not a cursor.
    package init(text: [UInt8]) throws(CRUDError) {
        guard let bytes = Base64.decode(text), bytes.count == Self.letters.count + 24, bytes.starts(with: Self.letters)
        else { throw CRUDError(.invalidQuery, #"`after` is neither "start" nor "now" nor a cursor of changes"#) }
        func number(_ index: Int) -> UInt64 {
            bytes.dropFirst(Self.letters.count + index * 8).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        }
        self.init(identity: number(0), sequence: number(1), base: number(2))
    }

    package var text: [UInt8] {
        let numbers = [identity, sequence, base].flatMap { number in
            (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> UInt64($0 * 8)) }
        }
        return Base64.encode(Self.letters + numbers)
    }

    /// Whether no removal is missing behind it.
    func isValid(in history: ChangeFeed.History) -> Bool {
        identity == history.identity && history.forgotten <= max(sequence, base)
    }

    /// A later place.
    func moved(to sequence: UInt64) -> ChangesCursor {
        ChangesCursor(identity: identity, sequence: sequence, base: base > sequence ? base : 0)
    }
}
