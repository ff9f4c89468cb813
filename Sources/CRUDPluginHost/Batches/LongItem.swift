package import CRUDModel
import Synchronization

/// Work on one collection that may take long. A backend's thread does it slice by slice and takes turns with all else.
package class LongItem: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    package let collection: BackendCollection
    private let abandoned = Atomic(false)

    init(on collection: BackendCollection, deliver: @escaping @Sendable (WorkItem) -> Void) {
        self.collection = collection
        super.init(deliver: deliver)
    }

    /// Nobody waits for it any more; it ends with its next slice. May be called by any thread.
    package final func abandon() { abandoned.store(true, ordering: .relaxed) }

    override final var isReadable: Bool { collection.isOpen }

    /// It cannot go on.
    func fail(_ error: CRUDError) { failure = error }

    package final var isAbandoned: Bool { abandoned.load(ordering: .relaxed) }
}

/// A search for records, on the thread that reads.
package final class Search: LongItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    package let reading: any SlicedReading

    package init(
        _ reading: any SlicedReading, in collection: BackendCollection,
        deliver: @escaping @Sendable (WorkItem) -> Void
    ) {
        self.reading = reading
        super.init(on: collection, deliver: deliver)
    }

    /// Does one slice with a reader; true when there is nothing left to do.
    func advance(with reader: BackendReader) -> Bool {
        defer { reader.endSnapshot() }
        if isAbandoned { return true }
        do throws(CRUDError) {
            return try reading.advance(with: reader, for: self)
        } catch {
            failure = error
            return true
        }
    }
}

/// What a ``Search`` does. It is called by one thread at a time.
package protocol SlicedReading: AnyObject, Sendable {
    /// Does one slice: some milliseconds' worth.
    ///
    /// - Parameter item: the search, to see whether anybody waits for it.
    /// - Returns: whether it is done.
    func advance(with reader: BackendReader, for item: LongItem) throws(CRUDError) -> Bool
}

/// A deletion of the records that match, on the thread that writes.
package final class Deletion: LongItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    private let matches: any MatchingRecords
    /// How many records have been deleted.
    package private(set) var count = 0

    package init(
        of matches: any MatchingRecords, in collection: BackendCollection,
        deliver: @escaping @Sendable (WorkItem) -> Void
    ) {
        self.matches = matches
        super.init(on: collection, deliver: deliver)
    }

    /// Deletes some of them; true when there is nothing left to do.
    func advance(with writer: BackendWriter) -> Bool {
        if isAbandoned { return true }
        do throws(CRUDError) {
            let isLast = try writer.read { reader throws(CRUDError) in
                try matches.find(with: reader, for: self)
            }
            let outcomes = try writer.remove(matches.found, from: collection)
            for (index, outcome) in outcomes.enumerated() {
                switch outcome {
                case .applied: count += 1
                case .exists, .notFound: break
                case .mismatch:
                    // Somebody else has changed it since: the search goes on before it.
                    matches.rewind(to: index)
                    return false
                case .failed(let status): throw writer.error(status: status)
                case .refused(let error): throw error
                }
            }
            return isLast
        } catch {
            fail(error)
            return true
        }
    }

    /// What has been deleted stays so.
    override func fail(_ error: CRUDError) {
        failure =
            count == 0
            ? error : CRUDError(.outcomeUnknown, "some records were deleted before this: \(error.message)")
    }
}

/// Finds the records that a ``Deletion`` deletes. It is called by one thread at a time.
package protocol MatchingRecords: AnyObject, Sendable {
    /// The records that the last ``find(with:for:)`` has found, by id.
    var found: [(id: [UInt8], revision: [UInt8])] { get }

    /// Finds further records, as many as one call of the plugin should delete at the most.
    ///
    /// - Returns: whether these are the last.
    func find(with reader: BackendReader, for item: LongItem) throws(CRUDError) -> Bool

    /// The search is to go on with the record at `index` of ``found``.
    func rewind(to index: Int)
}
