import CRUDPluginABI
import CRUDPluginHost
import Synchronization

/// The identity of a backend's storage since it was first opened. A storage that is opened again, as one in a child is
/// after that was lost, must be the same: another one, or a new one in the place of files that are gone, would be
/// served as if its records were the collections'.
final class KnownIdentity: Sendable {
    private let identity = Mutex<StorageIdentity?>(nil)

    var value: StorageIdentity? { identity.withLock { $0 } }

    /// Notes what has been opened.
    ///
    /// - Throws: ``PluginFailure`` with `unavailable` where it is another storage than before.
    func note(_ opened: StorageIdentity?) throws(PluginFailure) {
        let known = identity.withLock { known in
            if known == nil { known = opened }
            return known
        }
        guard let known, let opened, known != opened else { return }
        throw PluginFailure(
            status: CRUDD_UNAVAILABLE,
            message:
                "this is storage \(opened), and before it was storage \(known): put that back, or restart the daemon")
    }
}
