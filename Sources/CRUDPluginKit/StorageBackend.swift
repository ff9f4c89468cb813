/// Storage that the host reads and writes through a plugin: what a Swift plugin implements. For an ordered key-value
/// store, ``KeyValueStore`` is less to implement.
///
/// Each call is synchronous and may block; the host owns threads and scheduling. The rules are those of the plugin
/// contract (`crudd_plugin.h` and the README beside it): per backend the host makes one call at a time, except that
/// with ``Capabilities/readsConcurrently`` the readers are used at the same time as each other and as the backend.
///
/// Bytes that the host hands over (`UnsafeRawBufferPointer`) are valid until the call returns.
///
/// ```swift
/// @c @implementation
/// public func crudd_plugin_entry() -> UnsafePointer<crudd_plugin>? { PluginTable.export(MyBackend.self) }
/// ```
public protocol StorageBackend: AnyObject {
    /// What the administrator configures.
    associatedtype Options: PluginOptions
    /// What the backend knows of an open collection. The kit keeps it alive until the backend is closed.
    associatedtype Collection: AnyObject
    associatedtype Reader: StorageReader<Collection>

    /// The plugin's name and version, for people.
    static var name: String { get }
    static var version: String { get }
    /// What the plugin can do. What is not declared is refused by the kit and never reaches the plugin.
    static var capabilities: Capabilities { get }

    /// What a backend with these options can do of it, as far as that can be told without touching storage. By default
    /// all of it.
    static func capabilities(with options: Options) -> Capabilities

    /// The option that says where the storage is: two backends for which it has the same value would write to the same
    /// storage, which the host refuses. An absolute path counts as what it leads to. By default nil: there is none.
    static var storageOption: Options.Key? { get }

    /// Opens storage, and makes it if need be; not where the host expects one, see
    /// ``Host/requireStorage(_:in:)``.
    ///
    /// - Throws: ``StorageFailure`` with `unavailable` where a later attempt may succeed, `invalidOptions` where none
    ///   can.
    init(options: Options, host: Host, call: CallContext) throws(StorageFailure)

    /// What this backend can do of what the plugin declares: options and the storage itself may take something away. By
    /// default all of it.
    var capabilities: Capabilities { get }

    /// No record that was ever stored here has a higher sequence number, removed ones included. It may be an upper
    /// bound. The host asks once, after the backend was opened, and numbers its mutations from there. 0 where the
    /// storage numbers changes itself, see ``Capabilities/shared``.
    var lastSequence: UInt64 { get }

    /// A random number that was made and stored with the storage (``History/makeIdentity()``), and so is in every copy
    /// and backup. By default 0: the storage promises nothing beyond its process.
    var identity: UInt64 { get }

    /// How many readers, other than those of event loops, serve it best, such as several connections to a server. By
    /// default 1.
    var preferredReaders: Int { get }

    /// Where a file counts the commits of everybody, so that a host can cache records of a child. By default nil.
    var commitCounter: CommitCounter? { get }

    /// Closes storage. All readers are closed by then.
    func close()

    /// Opens a collection. For one that is open already returns the same object and brings its indexes up to date.
    ///
    /// It may not take long: the keys of new indexes are the host's to fill in.
    ///
    /// - Throws: ``StorageFailure`` with `notFound` if it is not there and the host did not ask to create it.
    func openCollection(_ specification: borrowing CollectionSpecification) throws(StorageFailure) -> Collection

    /// Removes a collection with its records; the host does not use it any more.
    ///
    /// - Throws: ``StorageFailure`` with `notFound` if it is not there.
    func dropCollection(named name: UnsafeRawBufferPointer, _ call: CallContext) throws(StorageFailure)

    /// Names every collection that is there, each once.
    func listCollections(_ call: CallContext, _ emit: (RawSpan) -> Void) throws(StorageFailure)

    /// Makes a reader. With ``Capabilities/readsConcurrently`` several may be made or closed at once, and at the same
    /// time as other calls.
    func openReader() throws(StorageFailure) -> Reader

    /// Applies mutations in order, each seeing those before it, and gives each of them an outcome in the batch.
    ///
    /// Returning means that every mutation whose outcome is success is as durable as the plugin promises. With
    /// ``WriteBatch/isAtomic`` the first other outcome undoes all and ends the batch.
    ///
    /// - Throws: ``StorageFailure`` if no mutation was applied (`outcomeUnknown`: if some may have been).
    func write(_ batch: borrowing WriteBatch<Collection>) throws(StorageFailure)

    /// Removes records that have expired, those that expired first first, as one batch, and then emits each of them. In
    /// a collection that keeps sequence numbers it remembers the removals. With ``Capabilities/expiry``.
    ///
    /// - Returns: the lowest `expiresAt` of the records that are stored after it; nil where none expires. It may be too
    ///   low.
    /// - Throws: ``StorageFailure`` if nothing was removed (`outcomeUnknown`: if something may have been).
    func removeExpired(_ request: borrowing ExpiryRequest<Collection>) throws(StorageFailure) -> Int64?

    /// Forgets old removals of a collection that keeps sequence numbers, and says what it remembers. With
    /// ``Capabilities/sequences``.
    func trimHistory(_ request: borrowing TrimRequest<Collection>) throws(StorageFailure) -> History

    /// Has a collection that keeps sequence numbers continue the history of another one, in one transaction. With
    /// ``Capabilities/takesHistory``.
    ///
    /// - Throws: ``StorageFailure`` if nothing was changed (`outcomeUnknown`: if it may have been).
    func takeHistory(_ history: borrowing TakenHistory<Collection>) throws(StorageFailure)

    /// Whether ``beginBackup(to:_:)`` makes copies. By default false.
    static var makesBackups: Bool { get }

    /// What an administrator uses instead where it makes none, such as "use pg_dump": the end of a sentence. By default
    /// nil.
    static var backupAdvice: String? { get }

    /// Begins a copy of the storage as of this moment, which is made while the storage is used: opened by the options
    /// with its path in the place of the storage's, it has the same identity and records.
    ///
    /// - Parameters:
    ///   - path: of an empty file of the host's, into which the copy is written, and nothing beside it.
    ///   - call: the context of the call.
    func beginBackup(to path: String, _ call: CallContext) throws(StorageFailure) -> any StorageBackup

    /// Maintenance while nothing is queued, called between writes. By default nothing.
    func idle(_ call: CallContext)
}

extension StorageBackend {
    public static func capabilities(with options: Options) -> Capabilities { capabilities }
    public static var storageOption: Options.Key? { nil }
    public var capabilities: Capabilities { Self.capabilities }
    public var preferredReaders: Int { 1 }
    public var identity: UInt64 { 0 }
    public var commitCounter: CommitCounter? { nil }
    public static var makesBackups: Bool { false }
    public static var backupAdvice: String? { nil }
    public func idle(_ call: CallContext) {}

    public func beginBackup(to path: String, _ call: CallContext) throws(StorageFailure) -> any StorageBackup {
        throw StorageFailure(.unsupported, "this plugin makes no backups")
    }

    public func removeExpired(_ request: borrowing ExpiryRequest<Collection>) throws(StorageFailure) -> Int64? {
        throw StorageFailure(.unsupported, "this plugin does not remove what has expired")
    }

    public func trimHistory(_ request: borrowing TrimRequest<Collection>) throws(StorageFailure) -> History {
        throw StorageFailure(.unsupported, "this plugin does not remember what was removed")
    }

    public func takeHistory(_ history: borrowing TakenHistory<Collection>) throws(StorageFailure) {
        throw StorageFailure(.unsupported, "this plugin does not continue the histories of other collections")
    }
}

/// A reader of a backend's records, which may hold a snapshot of them; the host makes one call at a time on each.
public protocol StorageReader<Collection>: AnyObject {
    associatedtype Collection: AnyObject

    /// Emits the records that are there, once for each position of the request that asks for one.
    func read(_ request: borrowing ReadRequest, from collection: Collection) throws(StorageFailure)

    /// Emits the records of a range, in its order.
    func scan(_ request: borrowing ScanRequest, of collection: Collection) throws(StorageFailure)

    /// Counts the records of a range, without those that have expired.
    func count(_ request: borrowing CountRequest, in collection: Collection) throws(StorageFailure) -> UInt64

    /// Says what a collection that keeps sequence numbers remembers by now, and up to which number its changes can be
    /// read. With both ``Capabilities/shared`` and ``Capabilities/sequences``: the storage numbers changes itself. By
    /// default that is not supported.
    ///
    /// - Throws: ``StorageFailure`` with `unsupported` for a collection that keeps no sequence numbers.
    func readHistory(of collection: Collection, _ call: CallContext) throws(StorageFailure) -> History

    /// Releases the snapshot, so that the next call sees every write that was acknowledged by then. By default nothing:
    /// for readers that hold none.
    func endSnapshot()

    /// A number that differs from the last one whenever somebody beside this backend has written since; 0: that cannot
    /// be told. It takes microseconds. By default 0.
    func dataVersion() -> UInt64

    /// Ends the reader.
    func close()
}

extension StorageReader {
    public func endSnapshot() {}
    public func dataVersion() -> UInt64 { 0 }

    public func readHistory(of collection: Collection, _ call: CallContext) throws(StorageFailure) -> History {
        throw StorageFailure(.unsupported, "this plugin does not number changes itself")
    }
}
