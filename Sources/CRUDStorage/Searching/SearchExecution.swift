import CRUDModel
import CRUDPluginCalls
import CRUDQuery

/// One way of executing a search.
protocol SearchExecution: AnyObject {
    /// The result, as JSON text, when the search is done.
    var result: [UInt8] { get }

    /// Records that cannot be decoded, when the search is done; at most 100 ids.
    var corrupt: [[UInt8]] { get }

    /// How the records have been found, when the search is done.
    var plan: QueryPlan? { get }

    /// Whether the next slice would be in vain: it waits for another thread or process.
    var isWaiting: Bool { get }

    /// Executes one slice.
    ///
    /// - Parameter isAbandoned: may be called on another thread.
    /// - Returns: whether the search is done.
    func advance(
        with reader: SnapshotReader, isAbandoned: @escaping @Sendable () -> Bool
    ) throws(CRUDError) -> Bool

    /// There will be no further slice.
    func end()
}
