package import CRUDFormats
package import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import Synchronization

/// A collection as a backend knows it: its name, its format, its layout, and what the plugin calls it.
///
/// All who use it share one object (``CollectionRegistry``). The plugin's handle is set by the backend's writer when
/// the first call needs it, and the writer alone tells the plugin the layout, at the next opportunity after it has been
/// replaced. Until then the former one is in force: index keys that were made by another than that are not stored
/// (``PluginMutation``), so that a key may be missing and is never wrong.
package final class BackendCollection: PluginCollection, Sendable {
    package let name: [UInt8]
    package let format: CollectionRule.Format
    package let codec: Codec
    private let registry: CollectionRegistry?

    /// Which collection of a backend it is: the plugin tells formats of one name apart.
    struct Key: Hashable {
        let name: [UInt8]
        let format: CollectionRule.Format
    }

    var key: Key { Key(name: name, format: format) }

    private struct LayoutState {
        /// What the configuration says, and its number.
        var current: NumberedLayout
        /// What the plugin has been told.
        var told: NumberedLayout?
    }

    /// A layout, and a number that no other one has as far as a plugin can tell them apart; 0 stands for none.
    struct NumberedLayout {
        var layout: CollectionLayout
        var number: UInt32
    }

    private let layouts: Mutex<LayoutState>
    private let currentNumber: Atomic<UInt32>
    private let toldNumber = Atomic<UInt32>(0)
    private static let lastNumber = Atomic<UInt32>(0)
    private let address = Atomic<UInt>(0)
    private let openingCount = Atomic<UInt32>(0)
    /// Which child has opened it, above the number by which that child knows it.
    private let childNumber = Atomic<UInt64>(0)
    private let openIndexes = Mutex<IndexSet?>(nil)
    private let openFeed = Mutex<ChangeFeed?>(nil)
    private let numberInCache = Atomic<UInt32>(0)
    private let admission = Atomic(false)
    private let readTasks = Atomic<Int>(0)
    private let copies = Atomic<Int>(0)

    /// An object that nobody shares.
    package convenience init(
        name: [UInt8], format: CollectionRule.Format, indexPaths: [PropertyPath] = [], retention: Duration? = nil
    ) {
        self.init(
            name: name, format: format, layout: CollectionLayout(indexPaths: indexPaths, retention: retention),
            registry: nil)
    }

    init(
        name: [UInt8], format: CollectionRule.Format, layout: CollectionLayout, registry: CollectionRegistry?
    ) {
        self.name = name
        self.format = format
        self.registry = registry
        codec = Codec(format)
        let number = Self.nextNumber()
        layouts = Mutex(LayoutState(current: NumberedLayout(layout: layout, number: number)))
        currentNumber = Atomic(number)
    }

    deinit { registry?.forget(key, ObjectIdentifier(self)) }

    /// What the plugin calls it; nil until it has been opened.
    package var handle: OpaquePointer? {
        get { OpaquePointer(bitPattern: address.load(ordering: .acquiring)) }
        set {
            let old = address.exchange(UInt(bitPattern: newValue), ordering: .acquiringAndReleasing)
            if old == 0, newValue != nil { openingCount.add(1, ordering: .acquiringAndReleasing) }
        }
    }

    /// How often it has been opened: another number says that it was closed meanwhile.
    package var openings: UInt32 { openingCount.load(ordering: .acquiring) }

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

    /// What is remembered of its changes; nil until it has been opened, and where nothing is.
    package var feed: ChangeFeed? {
        get { openFeed.withLock { $0 } }
        set { openFeed.withLock { $0 = newValue } }
    }

    /// Whether it is known where collections are that this one may be written here: asked for again after each change
    /// of that.
    var isAdmitted: Bool {
        get { admission.load(ordering: .acquiring) }
        set { admission.store(newValue, ordering: .releasing) }
    }

    /// Whether anything reads it that takes long: that reads to its end here, wherever the collection is by then.
    var isBeingRead: Bool { readTasks.load(ordering: .acquiring) > 0 }

    func beginReading() { readTasks.add(1, ordering: .acquiringAndReleasing) }
    func endReading() { readTasks.subtract(1, ordering: .acquiringAndReleasing) }

    /// Whether it gets copies of another one's records: what becomes of them is told by that one alone, their expiry
    /// included. A removal here would have a number that may be higher than those of later copies.
    var isBeingCopied: Bool { copies.load(ordering: .acquiring) > 0 }

    func beginCopying() { copies.add(1, ordering: .acquiringAndReleasing) }
    func endCopying() { copies.subtract(1, ordering: .acquiringAndReleasing) }

    /// The plugin's handle is not to be used any more.
    func close() {
        isAdmitted = false
        cacheNumber = 0
        handle = nil
        told(nil)
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

    // MARK: The layout

    private static func nextNumber() -> UInt32 {
        // 2^32 changed layouts are not reached; 0 stands for none.
        max(1, lastNumber.add(1, ordering: .relaxed).newValue)
    }

    /// What the configuration says; it is in force once the plugin has been told.
    package var layout: CollectionLayout {
        get { layouts.withLock { $0.current.layout } }
        set {
            layouts.withLock { state in
                if !state.current.layout.isTold(like: newValue) {
                    state.current.number = Self.nextNumber()
                    currentNumber.store(state.current.number, ordering: .releasing)
                }
                state.current.layout = newValue
            }
        }
    }

    /// The layout with its number: index keys that are made by it name that.
    var numberedLayout: NumberedLayout { layouts.withLock { $0.current } }

    /// The number of ``layout``.
    var layoutNumber: UInt32 { currentNumber.load(ordering: .acquiring) }

    /// The number of the layout that is in force; 0: none is.
    var toldLayoutNumber: UInt32 { toldNumber.load(ordering: .acquiring) }

    /// The layout that is in force; nil until the collection has been opened.
    var toldLayout: NumberedLayout? { layouts.withLock { $0.told } }

    /// Notes what the plugin has been told; nil: nothing, or it is not known what.
    func told(_ layout: NumberedLayout?) {
        layouts.withLock { $0.told = layout }
        toldNumber.store(layout?.number ?? 0, ordering: .releasing)
    }

    /// Whether it is open and the plugin has been told what the configuration says.
    var isCurrent: Bool { isOpen && layoutNumber == toldLayoutNumber }

    /// The indexes that are being built, or that the plugin has not been told yet.
    package var indexProgress: [IndexSet.Progress] {
        guard isCurrent || !isOpen else {
            return indexPaths.map { IndexSet.Progress(property: $0.text, indexed: 0, total: 0) }
        }
        return indexes?.progress ?? []
    }

    /// The paths of the indexes that the configuration names.
    package var indexPaths: [PropertyPath] { layout.indexPaths }

    /// How the plugin is asked to open it.
    ///
    /// - Parameter body: receives the description, which is valid until it returns.
    func withSpecification(
        flags: UInt32, indexes: [PropertyPath], _ body: (UnsafePointer<crudd_collection_spec>) -> crudd_status
    ) -> crudd_status {
        crudd_collection_spec.with(name: name, format: format, flags: flags, indexes: indexes, body)
    }
}
