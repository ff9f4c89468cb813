import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost

/// What a backend's storage is opened with, and what stays when it is opened again.
struct StorageEnvironment: Sendable {
    let plugin: Plugin
    /// A JSON object, checked by the plugin before.
    let options: [UInt8]
    let clock: CommitClock
    /// Nil where records are never cached.
    let cache: BackendCache?
    let trackers: ChangeTrackers
    let writes: WriteMeter
    let feeds: ChangeFeeds
    let failures: FailureReporter
    let identity: KnownIdentity
    /// Asked before a collection is created, on the writer's thread; returns why it must not be.
    let admission: CollectionAdmission
    /// Asked before an atomic batch creates several, as above.
    let creationCheck: CollectionCreationCheck

    func snapshotReader(_ handle: PluginHandle) -> SnapshotReader {
        SnapshotReader(handle, of: plugin.table, clock: clock) { [failures] failure, call in
            failures.report(failure, during: call)
        }
    }
}
