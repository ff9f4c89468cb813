import CRUDJSON
import CRUDModel

/// A place in the feed of a collection's changes.
///
/// To a client it is opaque text, ``SealedCursor``.
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
        case sealed(SealedCursor)
    }

    package init(identity: UInt64 = 0, sequence: UInt64 = 0, base: UInt64 = 0) {
        self.identity = identity
        self.sequence = sequence
        self.base = base
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
