import Synchronization

/// Collects which fields of a value are absent while it is encoded: its text does not distinguish them from members
/// that are nil.
final class AbsentFields: Sendable {
    /// That of the present encoding; nil: nobody wants to know.
    @TaskLocal static var current: AbsentFields?

    private let found = Mutex<[[String]]>([])

    /// The paths of the fields.
    var paths: [[String]] { found.withLock(\.self) }

    func add(_ path: [any CodingKey]) {
        found.withLock { $0.append(path.map(\.stringValue)) }
    }
}
