import CRUDPluginKit
import Synchronization

/// The transaction of records that the writer is about to commit, until its outcome is known.
///
/// A commit that waits for its standbys becomes visible when that wait ends, also where an administrator has ended it
/// or the session, before the writer hears of that. So what may have been read of it is used only when the outcome is
/// known: then it is replicated, or there is doubt.
final class CommitInProgress: Sendable {
    private struct Contents {
        /// Of the records that it stores; they are unique.
        var revisions: Set<[UInt8]> = []
        var removed: Set<RecordKey> = []
        /// The collections that it changes.
        var collections: Set<ObjectIdentifier> = []
    }

    private let contents = Mutex(Contents())
    /// Odd while there is one.
    private let number = Atomic<UInt64>(0)

    // MARK: The writer

    /// A part of a batch may become visible from now on.
    func begin(_ batch: borrowing WriteBatch<PostgreSQLCollection>, _ range: Range<Int>) {
        var contents = Contents()
        for position in range {
            let mutation = batch[position]
            switch mutation.kind {
            case .put: contents.revisions.insert(Array(mutation.revision))
            case .remove: contents.removed.insert(RecordKey(mutation))
            // Checks and keys change no record.
            default: continue
            }
            contents.collections.insert(ObjectIdentifier(mutation.collection))
        }
        self.contents.withLock { [contents] in $0 = contents }
        number.add(1, ordering: .acquiringAndReleasing)
    }

    /// The outcome is known, or there is doubt.
    func end() {
        if isOver(number.load(ordering: .relaxed)) { return }
        number.add(1, ordering: .acquiringAndReleasing)
    }

    // MARK: Readers

    /// What has been asked for.
    enum Question {
        /// Records by their ids.
        case records([RecordKey])
        /// Which records there are in a range, or how many.
        case range(of: PostgreSQLCollection)
    }

    /// The number of the commit that may have been visible in a result; nil: there is none.
    func number(shownBy result: QueryResult, to question: () -> Question) -> UInt64? {
        let number = number.load(ordering: .acquiring)
        if isOver(number) { return nil }
        let question = question()
        let isShown = contents.withLock { contents in
            switch question {
            case .range(let collection): contents.collections.contains(ObjectIdentifier(collection))
            case .records(let keys):
                result.rowCount < keys.count && keys.contains(where: contents.removed.contains)
                    || (0..<result.rowCount).contains { contents.revisions.contains(Array(result.bytes($0, 1))) }
            }
        }
        return isShown ? number : nil
    }

    /// Whether the outcome of a commit is known, or there is doubt.
    func isOver(_ number: UInt64) -> Bool { number % 2 == 0 || self.number.load(ordering: .acquiring) != number }
}
