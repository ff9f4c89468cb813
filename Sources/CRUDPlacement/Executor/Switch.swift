import CRUDModel
import CRUDStorage
import Logging

/// The end of a move: the last records are copied while nothing writes them, and one record of the catalog says that
/// the collection is in its new place, and that originals are in the old one. Before that record the old place counts,
/// behind it the new one, and at that time both hold the same records.
final class Switch: PlacementChange, @unchecked Sendable {
    // @unchecked: made by a worker, which waits until the executor is done with it.

    private let name: [UInt8]
    private let source: CollectionPlace
    private let target: CollectionPlace
    private let entry: Catalog.Entry
    private let copy: CollectionCopy
    private let control: PlacementControl
    private let begin = ContinuousClock.now
    /// Whether everything had been copied; where it had not, the switch is put off.
    private(set) var isPrepared = false

    /// - Parameter entry: of the collection while it is copied.
    init(
        _ name: [UInt8], from source: CollectionPlace, to target: CollectionPlace, _ entry: Catalog.Entry,
        _ copy: CollectionCopy, _ control: PlacementControl
    ) {
        self.name = name
        self.source = source
        self.target = target
        self.entry = entry
        self.copy = copy
        self.control = control
    }

    var scope: QuiescedCollections? { .one(name) }
    /// How long requests may wait for what is in flight before the switch is put off.
    let timeout = Duration.milliseconds(500)

    func prepare() throws(CRUDError) {
        guard control.catalog.entry(name) == entry, copy.isValid, try copy.finish(within: timeout) else {
            throw CRUDError(.unavailable, "not everything has been copied")
        }
        isPrepared = true
    }

    func transitions(_ catalog: Catalog) throws(CRUDError) -> [Catalog.Transition] {
        switch entry.placement.next(.copied(to: target)) {
        case .to(let placement): return [Catalog.Transition(name, from: entry, to: placement)]
        case .same, .refused: throw CRUDError(.unavailable, "the move is over")
        }
    }

    func committed() {
        control.keep(name)
        control.logger.notice(
            "collection \(quoted(name)) has moved from \(source) to \(target); the originals stay until dropped")
        let wait = begin.duration(to: .now)
        control.logger.info("the requests of collection \(quoted(name)) have waited \(wait)")
    }
}
