package import CRUDFormats
package import CRUDModel
package import CRUDPluginABI
import CRUDPluginHost
import Synchronization

/// A collection as a backend knows it: its name, its format, its indexes, and what the plugin calls it.
///
/// Each event loop has an object of its own for a collection. The plugin's handle is set by the backend's writer when
/// the first call needs it; all objects of a collection get the same one.
package final class BackendCollection: Sendable {
    package let name: [UInt8]
    package let format: CollectionRule.Format
    package let codec: Codec
    /// The paths of its indexes; index n of a plugin that keeps indexes is the one at position n.
    package let indexPaths: [PropertyPath]
    /// For how long its feed of changes remembers removals; nil: it has no feed.
    package let retention: Duration?

    /// Which collection of a backend it is: the plugin tells formats of one name apart.
    struct Key: Hashable {
        let name: [UInt8]
        let format: CollectionRule.Format
    }

    var key: Key { Key(name: name, format: format) }

    private let address = Atomic<UInt>(0)
    /// Which child has opened it, above the number by which that child knows it.
    private let childNumber = Atomic<UInt64>(0)
    private let openIndexes = Mutex<IndexSet?>(nil)
    private let openFeed = Mutex<ChangeFeed?>(nil)
    private let numberInCache = Atomic<UInt32>(0)

    package convenience init(name: [UInt8], rule: CollectionRule) {
        self.init(
            name: name, format: rule.format, indexPaths: rule.indexPaths, retention: rule.changes?.retention)
    }

    package init(
        name: [UInt8], format: CollectionRule.Format, indexPaths: [PropertyPath] = [], retention: Duration? = nil
    ) {
        self.name = name
        self.format = format
        self.indexPaths = indexPaths
        self.retention = retention
        codec = Codec(format)
    }

    /// What the plugin calls it; nil until it has been opened.
    package var handle: OpaquePointer? {
        get { OpaquePointer(bitPattern: address.load(ordering: .acquiring)) }
        set { address.store(UInt(bitPattern: newValue), ordering: .releasing) }
    }

    /// What its records are cached under; 0 until it has been opened, and where they are not cached.
    var cacheNumber: UInt32 {
        get { numberInCache.load(ordering: .acquiring) }
        set { numberInCache.store(newValue, ordering: .releasing) }
    }

    /// Whether a reader can be asked for its records.
    package var isOpen: Bool { address.load(ordering: .acquiring) != 0 }

    /// How far its indexes have been built; nil until it has been opened, and where the backend keeps none for it.
    package var indexes: IndexSet? {
        get { openIndexes.withLock { $0 } }
        set { openIndexes.withLock { $0 = newValue } }
    }

    /// Whether it is to have a feed of its changes.
    var remembersChanges: Bool { retention != nil }

    /// What is remembered of its changes; nil until it has been opened, and where nothing is.
    package var feed: ChangeFeed? {
        get { openFeed.withLock { $0 } }
        set { openFeed.withLock { $0 = newValue } }
    }

    /// The plugin's handle is not to be used any more.
    func close() {
        cacheNumber = 0
        handle = nil
        childNumber.store(0, ordering: .releasing)
        indexes = nil
        feed = nil
    }

    /// Notes by which number a child knows the collection.
    func set(number: Int, inChild child: UInt32) {
        childNumber.store(UInt64(child) << 32 | UInt64(number), ordering: .releasing)
    }

    /// The number by which a child knows the collection; nil if this child has not opened it.
    func number(inChild child: UInt32) -> Int? {
        let number = childNumber.load(ordering: .acquiring)
        return number >> 32 == UInt64(child) ? Int(number & 0xFFFF_FFFF) : nil
    }

    /// How the plugin is asked to open it.
    ///
    /// - Parameter body: receives the description, which is valid until it returns.
    package func withSpecification(
        flags: UInt32, withIndexes: Bool, _ body: (UnsafePointer<crudd_collection_spec>) -> crudd_status
    ) -> crudd_status {
        // All texts one after the other, so that their addresses hold together.
        let paths = withIndexes ? indexPaths.map { Array($0.text.utf8) } : []
        let texts = [name, Array(format.rawValue.utf8)] + paths
        return texts.flatMap(\.self).withUnsafeBufferPointer { bytes in
            var end = 0
            let places = texts.map { text in
                defer { end += text.count }
                return crudd_bytes(UnsafeBufferPointer(rebasing: bytes[end..<end + text.count]))
            }
            return places.withUnsafeBufferPointer { places in
                var specification = crudd_collection_spec.sized()
                specification.flags = flags
                specification.name = places[0]
                specification.format = places[1]
                specification.indexes = UnsafeBufferPointer(rebasing: places[2...]).baseAddress
                specification.index_count = paths.count
                return body(&specification)
            }
        }
    }
}
