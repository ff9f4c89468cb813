import CRUDPluginABI
import CRUDPluginHost
import Synchronization

/// A channel's reader of the plugin's.
///
/// As in the daemon's event loops, its view of the data is kept from one read to the next, by the same rules: it is let go
/// before a read if anything has been written since it was taken, or is being written; and when it has been held for
/// ``BackendReader/maximumSnapshotAge``, by ``ChannelService`` if nothing more is asked.
final class ChannelReader {
    private let table: UnsafePointer<crudd_plugin>
    private let reader: OpaquePointer
    /// The view that is held: the storage's writes when it was taken, and until when it may be kept.
    private var view: (writes: UInt64, end: ContinuousClock.Instant)?

    init(_ reader: OpaquePointer, of table: UnsafePointer<crudd_plugin>) {
        self.reader = reader
        self.table = table
    }

    deinit { table.pointee.close_reader(reader) }

    var holdsView: Bool { view != nil }

    /// The plugin's own, to read with once.
    func forReading(_ storage: Storage) -> OpaquePointer {
        guard table.pointee.end_snapshot != nil else { return reader }
        let writes = storage.writes.load(ordering: .acquiring)
        let now = ContinuousClock.now
        if let view {
            if view.writes == writes, writes.isMultiple(of: 2), now < view.end { return reader }
            endView()
        }
        view = (writes, now + BackendReader.maximumSnapshotAge)
        return reader
    }

    /// Lets go of the view, which keeps a database from reusing its log.
    func endView() {
        guard view != nil else { return }
        view = nil
        table.pointee.end_snapshot?(reader)
    }
}
