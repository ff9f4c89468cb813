package import CRUDModel
package import CRUDPluginABI
import Synchronization

/// One thread's way of reading from a backend.
///
/// A reader may hold a view of the data between reads, which makes reading twice as fast on SQLite. Two rules bound
/// it: a read that begins after a write was answered sees that write (the backend counts its commits, and a view that
/// is older than the last commit is let go first), and no view lives longer than ``maximumSnapshotAge``, since
/// the database cannot reuse its log beneath one.
package final class BackendReader {
    /// How long a view may be held.
    package static let maximumSnapshotAge = Duration.milliseconds(100)

    let table: UnsafePointer<crudd_plugin>
    let reader: OpaquePointer
    private let backend: Backend
    let failure = FailureReport()
    /// Made once; each read sets what differs.
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing that is
    // called during an access comes back to it.
    @exclusivity(unchecked) private var request = crudd_read()
    /// Where the records of the read go that is under way.
    private var sink: (any RecordSink)?
    /// The backend's commits when the view was taken; nil while there is none.
    private var snapshotCommits: UInt64?

    /// - Parameter handle: the plugin's reader, used by this object alone.
    init(backend: Backend, handle: PluginHandle) {
        self.backend = backend
        table = backend.plugin.table
        reader = handle.pointer
        request.struct_size = UInt32(MemoryLayout<crudd_read>.size)
        request.context = Unmanaged.passUnretained(self).toOpaque()
        request.emit = { context, index, _, item, revision in
            guard let context else { return 1 }
            // `context` is the reader that is making the call.
            let sink = Unmanaged<BackendReader>.fromOpaque(context).takeUnretainedValue().sink
            return sink?.receive(index: index, item: item.buffer, revision: revision.buffer) == true ? 0 : 1
        }
    }

    /// Whether a view is being held.
    package var holdsSnapshot: Bool { snapshotCommits != nil }

    /// Whether the view that is held lacks a commit.
    package var isStale: Bool {
        snapshotCommits.map { $0 != backend.commits.load(ordering: .acquiring) } ?? false
    }

    /// Lets go of the view, if any.
    package func endSnapshot() {
        guard snapshotCommits != nil else { return }
        snapshotCommits = nil
        table.pointee.end_snapshot?(reader)
    }

    /// Reads records by id; each that is there goes to the sink.
    ///
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    package func read(
        _ ids: Span<crudd_bytes>, in collection: BackendCollection, withItems: Bool = true,
        into sink: any RecordSink
    ) throws(CRUDError) {
        guard let handle = collection.handle else { return }
        renew()
        let status = ids.withUnsafeBufferPointer { call(handle, $0.baseAddress, $0.count, withItems: withItems, sink) }
        if Int(status) != CRUDD_OK { throw fail(status, "read") }
    }

    /// Reads one record by id; if it is there it goes to the sink.
    ///
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    package func read(
        _ id: Span<UInt8>, in collection: BackendCollection, into sink: any RecordSink
    ) throws(CRUDError) {
        guard let handle = collection.handle else { return }
        renew()
        let status = id.withUnsafeBufferPointer { bytes in
            withUnsafePointer(to: crudd_bytes(bytes)) { call(handle, $0, 1, withItems: true, sink) }
        }
        if Int(status) != CRUDD_OK { throw fail(status, "read") }
    }

    /// Carries out a batch of reads; its results are set.
    package func carryOut(_ batch: ReadBatch) { ReadRun.carryOut([batch], with: self) }

    /// Counts the records of a collection whose ids begin with `prefix`.
    ///
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    func count(
        _ collection: BackendCollection, prefix: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) throws(CRUDError) -> Int {
        guard let handle = collection.handle else { return 0 }
        renew()
        var request = crudd_count()
        request.struct_size = UInt32(MemoryLayout<crudd_count>.size)
        request.collection = handle
        request.prefix = crudd_bytes(prefix)
        var count: UInt64 = 0
        let status = table.pointee.count(reader, &request, &count, failure.pointer)
        if Int(status) != CRUDD_OK { throw fail(status, "count") }
        return Int(clamping: count)
    }

    /// Whether the plugin, as it has been opened, looks into records. One that does not say so is not asked: it need not
    /// know that there is such a question.
    var canQuery: Bool { backend.capabilities.contains(.queries) }

    /// Lets go of a view that lacks a commit; a read follows.
    func renew() {
        let commits = backend.commits.load(ordering: .acquiring)
        let isWriting = backend.hasSeveralLoops && !commits.isMultiple(of: 2)
        if let snapshotCommits, isWriting || snapshotCommits != commits { endSnapshot() }
        snapshotCommits = commits
    }

    private func call(
        _ collection: OpaquePointer, _ ids: UnsafePointer<crudd_bytes>?, _ count: Int, withItems: Bool,
        _ sink: any RecordSink
    ) -> crudd_status {
        request.flags = withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)
        request.collection = collection
        request.ids = ids
        request.count = count
        self.sink = sink
        defer { self.sink = nil }
        return table.pointee.read(reader, &request, failure.pointer)
    }

    func fail(_ status: crudd_status, _ call: String) -> CRUDError {
        backend.report(failure.take(status: status), during: call)
    }
}

/// Receives the records that a read finds.
package protocol RecordSink: AnyObject {
    /// - Parameters:
    ///   - index: the position of the record's id in the request.
    ///   - item: the stored bytes, gone when the call returns; empty if items were not asked for.
    ///   - revision: the revision, gone when the call returns.
    /// - Returns: whether further records are wanted.
    func receive(index: Int, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) -> Bool
}
