import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import Synchronization

/// What the channels share: the plugin, its storage once it is open, collections and searches.
final class Storage: Sendable {
    let plugin: Plugin
    /// Tells whether a channel's snapshot lacks a write.
    let clock = CommitClock(readers: 2)
    private let state = Mutex(State())

    private struct State {
        var opened: OpenedPlugin?
        /// By the daemon's numbers.
        var collections: [Int: ServedCollection] = [:]
        var searches: [Int: Search] = [:]
        var maximumItemBytes = Int.max
        var backup: PluginHandle?
    }

    init(_ plugin: Plugin) {
        self.plugin = plugin
    }

    var table: UnsafePointer<crudd_plugin> { plugin.table }

    var opened: OpenedPlugin? {
        get { state.withLock { $0.opened } }
        set { state.withLock { $0.opened = newValue } }
    }

    /// The longest item that is sure to fit a frame.
    var maximumItemBytes: Int {
        get { state.withLock { $0.maximumItemBytes } }
        set { state.withLock { $0.maximumItemBytes = newValue } }
    }

    /// Closes the storage; all readers are closed by then.
    func close() {
        if let backup = takeBackup() { table.pointee.end_backup(backup.pointer) }
        if let opened { table.pointee.close(opened.storage) }
    }

    // MARK: Collections

    func collection(_ number: Int) -> ServedCollection? { state.withLock { $0.collections[number] } }

    /// Adds a collection by a number. Where it was open already, its other numbers mean what it is now, or, where it
    /// was opened as it is, the new number means what it was.
    func add(_ collection: ServedCollection, as number: Int, isAsItIs: Bool) {
        state.withLock { state in
            if isAsItIs, let known = state.collections.values.first(where: { $0.handle == collection.handle }) {
                state.collections[number] = known
                return
            }
            for (other, known) in state.collections where known.handle == collection.handle {
                state.collections[other] = collection
            }
            state.collections[number] = collection
        }
    }

    /// Forgets the numbers of a collection that has been dropped.
    func removeCollections(named name: String) {
        state.withLock { $0.collections = $0.collections.filter { !$0.value.name.elementsEqual(name.utf8) } }
    }

    // MARK: Backups

    /// The backup that is being made. The daemon makes one call at a time for it.
    var backup: PluginHandle? { state.withLock { $0.backup } }

    /// Keeps a backup that has begun.
    func keep(_ backup: PluginHandle) { state.withLock { $0.backup = backup } }

    /// Takes the backup, to end it.
    func takeBackup() -> PluginHandle? { state.withLock { $0.backup.take() } }

    // MARK: Searches

    /// Keeps a search until it is continued.
    func keep(_ search: Search, as task: Int) {
        state.withLock { $0.searches[task] = search }
    }

    /// Takes a search that was kept.
    func takeSearch(_ task: Int) -> Search? {
        state.withLock { $0.searches.removeValue(forKey: task) }
    }
}
