import CRUDPluginABI
import CRUDPluginHost
import Glibc
import Synchronization

/// What the channels share: the plugin, its storage once it is open, and the collections.
final class Storage: Sendable {
    let plugin: Plugin
    /// Changes when a write begins, to an odd number, and when it has ended.
    let writes = Atomic<UInt64>(0)
    private let state = Mutex(State())

    private struct State: @unchecked Sendable {
        // @unchecked: addresses of the plugin's things; the contract says which calls may be made beside each other, and
        // the channels keep to it.
        var backend: OpaquePointer?
        /// By the daemon's numbers.
        var collections: [Int: OpenCollection] = [:]
        var maximumItemBytes = Int.max
    }

    /// A collection that the plugin has opened.
    struct OpenCollection: @unchecked Sendable {
        // @unchecked: as `State`.
        let handle: OpaquePointer
        let name: [UInt8]
        /// Whether its items are JSON texts.
        let isJSON: Bool
    }

    init(_ plugin: Plugin) {
        self.plugin = plugin
    }

    var table: UnsafePointer<crudd_plugin> { plugin.table }

    var backend: OpaquePointer? {
        get { state.withLock { $0.backend } }
        set {
            let newValue = UInt(bitPattern: newValue)
            state.withLock { $0.backend = OpaquePointer(bitPattern: newValue) }
        }
    }

    subscript(number: Int) -> OpenCollection? {
        get { state.withLock { $0.collections[number] } }
        set { state.withLock { $0.collections[number] = newValue } }
    }

    /// Does something after which no view of the data is up to date.
    func write(_ body: () -> crudd_status) -> crudd_status {
        writes.add(1, ordering: .acquiringAndReleasing)
        defer { writes.add(1, ordering: .acquiringAndReleasing) }
        return body()
    }

    /// Forgets the numbers of a collection that has been dropped: what they stood for may be gone.
    func forgetCollections(named name: UnsafeRawBufferPointer) {
        let name = Array(name)
        state.withLock { $0.collections = $0.collections.filter { $0.value.name != name } }
    }

    /// The longest item that is sure to fit a frame.
    var maximumItemBytes: Int {
        get { state.withLock { $0.maximumItemBytes } }
        set { state.withLock { $0.maximumItemBytes = newValue } }
    }

    /// Closes the storage; all readers are closed by then.
    func close() {
        if let backend { table.pointee.close(backend) }
    }
}

/// What the plugin sees of the host: its lines go to standard error, marked with their levels.
enum StandardErrorLog {
    /// Lives as long as the process.
    // The struct is never written again.
    nonisolated(unsafe) static let host: UnsafePointer<crudd_host> = {
        let host = UnsafeMutablePointer<crudd_host>.allocate(capacity: 1)
        host.initialize(to: crudd_host())
        host.pointee.struct_size = UInt32(MemoryLayout<crudd_host>.size)
        host.pointee.log = { _, level, message in
            let mark =
                switch level {
                case CRUDD_LOG_DEBUG: "<7>"
                case CRUDD_LOG_INFO: "<6>"
                case CRUDD_LOG_WARNING: "<4>"
                default: "<3>"
                }
            // One write, so that lines of several threads do not mix; a line break would make a second line of it.
            let text = UnsafeRawBufferPointer(start: message.data, count: message.size)
            let line = Array(mark.utf8) + text.map { $0 == 0x0A ? 0x20 : $0 } + [0x0A]
            _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
        }
        return UnsafePointer(host)
    }()
}
