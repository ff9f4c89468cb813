/// Storage that the host reads and writes through a plugin: what a Swift plugin implements.
///
/// Each call is synchronous and may block; the host owns threads and scheduling. The rules are those of the plugin
/// contract (`crudd_plugin.h` and the README beside it): per backend the host makes one call at a time, except that
/// with ``Capabilities/readsConcurrently`` the readers are used beside each other and beside the backend's own calls.
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
    /// What the plugin can do. The host never calls what is not declared.
    static var capabilities: Capabilities { get }

    /// Opens storage.
    ///
    /// - Throws: ``StorageFailure`` with `unavailable` where a later attempt may succeed, `invalidOptions` where none
    ///   can.
    init(options: Options, host: Host) throws(StorageFailure)

    /// What this backend can do of what the plugin declares: options may take something away. By default all of it.
    var capabilities: Capabilities { get }

    /// Closes storage. All readers are closed by then.
    func close()

    /// Opens a collection; for one that is open already answers the same object and brings its indexes up to date.
    ///
    /// - Throws: ``StorageFailure`` with `notFound` if it is not there and the host did not ask to create it.
    func openCollection(_ specification: borrowing CollectionSpecification) throws(StorageFailure) -> Collection

    /// Removes a collection with its records; the host does not use it any more.
    ///
    /// - Throws: ``StorageFailure`` with `notFound` if it is not there.
    func dropCollection(named name: UnsafeRawBufferPointer) throws(StorageFailure)

    /// Names every collection that is there, each once.
    func listCollections(_ emit: (RawSpan) -> Void) throws(StorageFailure)

    /// Makes a reader. With ``Capabilities/readsConcurrently`` several may be made at once, beside other calls, and be
    /// closed likewise.
    func openReader() throws(StorageFailure) -> Reader

    /// Applies mutations in order, each seeing those before it, and settles each of them in the batch.
    ///
    /// Returning means that every mutation settled as applied is as durable as the plugin promises. With
    /// ``WriteBatch/isAtomic`` the first other outcome undoes all and ends the batch.
    ///
    /// - Throws: ``StorageFailure`` if no mutation was applied (`outcomeUnknown`: if some may have been).
    func write(_ batch: borrowing WriteBatch<Collection>) throws(StorageFailure)

    /// Work for a quiet moment, called between writes when nothing is queued. By default nothing.
    func idle()
}

extension StorageBackend {
    public var capabilities: Capabilities { Self.capabilities }
    public func idle() {}
}

/// One view of a backend's records; the host makes one call at a time on each.
public protocol StorageReader<Collection>: AnyObject {
    associatedtype Collection: AnyObject

    /// Emits the records that are there, for each position of the request that asks for one.
    func read(_ request: borrowing ReadRequest, from collection: Collection) throws(StorageFailure)

    /// Emits records by id, ascending by byte.
    func scan(_ request: borrowing ScanRequest, of collection: Collection) throws(StorageFailure)

    /// Counts the records whose ids begin with `prefix`; all of them if it is empty.
    func count(prefix: UnsafeRawBufferPointer, in collection: Collection) throws(StorageFailure) -> UInt64

    /// Emits the records that match the request's filter, in the order of its sort, as the protocol's rules for both
    /// say. By default refuses everything.
    ///
    /// Called only where ``Capabilities/queries`` is declared, for collections whose format is `json`.
    ///
    /// - Throws: ``StorageFailure`` with `unsupported`, before anything is emitted, for a filter or a sort that cannot
    ///   be evaluated exactly so: the host then scans and evaluates itself. `unavailable` when it is interrupted.
    func query(_ request: borrowing QueryRequest, of collection: Collection) throws(StorageFailure)

    /// Counts the records that match a filter. By default refuses everything.
    ///
    /// Called only where ``Capabilities/queries`` is declared, for collections whose format is `json`.
    ///
    /// - Throws: ``StorageFailure`` as ``query(_:of:)`` does.
    func count(matching request: borrowing CountRequest, in collection: Collection) throws(StorageFailure) -> UInt64

    /// Lets go of the view, so that the next call sees every write answered by then. By default nothing: for readers
    /// that hold no view.
    func endSnapshot()

    /// Ends the reader.
    func close()
}

extension StorageReader {
    public func endSnapshot() {}

    public func query(_ request: borrowing QueryRequest, of collection: Collection) throws(StorageFailure) {
        throw StorageFailure(.unsupported, "this plugin evaluates no queries")
    }

    public func count(
        matching request: borrowing CountRequest, in collection: Collection
    ) throws(StorageFailure) -> UInt64 {
        throw StorageFailure(.unsupported, "this plugin evaluates no filters")
    }
}
