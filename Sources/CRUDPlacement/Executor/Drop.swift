import CRUDModel
import CRUDStorage

/// A drop: one record of the catalog says that the collection is in no place, and that whatever there is of it is to be
/// removed. From then on none of it is served again. What is served now is removed while its requests wait, so that
/// they find an empty collection; the rest is removed by acts.
final class Drop: PlacementChange {
    private let name: [UInt8]
    private let requiresEmpty: Bool
    private let control: PlacementControl
    private var entry = Catalog.Entry.none
    /// Where it is, by the catalog or because it has been found there.
    private var place: CollectionPlace?

    init(_ name: [UInt8], requiresEmpty: Bool, _ control: PlacementControl) {
        self.name = name
        self.requiresEmpty = requiresEmpty
        self.control = control
    }

    var scope: QuiescedCollections? { .one(name) }
    let timeout = Duration.seconds(2)

    /// Whether there was anything.
    var wasThere: Bool { place != nil || !entry.placement.originals.isEmpty }

    func prepare() throws(CRUDError) {
        guard let rule = control.rule(for: name) else {
            // A reload came first.
            throw .unmapped
        }
        entry = control.catalog.entry(name)
        try control.refuseSharedOriginals(of: entry.placement)
        let wanted = entry.placement.authority ?? rule.place
        place = entry.placement.authority
        guard place == nil || requiresEmpty else { return }
        guard let backend = control.backend(wanted.backend) else {
            throw CRUDError(.unavailable, "backend \(wanted.backend) is not among those of the configuration")
        }
        for format in CollectionRule.Format.allCases {
            guard try backend.has(name, format, within: timeout) else { continue }
            if place == nil { place = CollectionPlace(backend: wanted.backend, format: format) }
            if requiresEmpty, try backend.hasRecords(name, format, within: timeout) {
                throw CRUDError(.recordExists, "the collection has records")
            }
        }
    }

    func transitions(_ catalog: Catalog) throws(CRUDError) -> [Catalog.Transition] {
        switch entry.placement.next(.drop(found: place)) {
        case .same: return []
        case .to(let placement): return [Catalog.Transition(name, from: entry, to: placement)]
        case .refused(let refusal): throw CRUDError(.unavailable, "the collection \(refusal.message)")
        }
    }

    func committed() {
        control.keep(name)
        if let place { control.remove(name, from: place, within: timeout) }
        control.follow(name)
    }
}

/// A drop of what moves have left behind, which no request waits for.
final class OriginalsDrop: PlacementChange {
    private let name: [UInt8]
    private let control: PlacementControl
    private(set) var wasThere = false

    init(_ name: [UInt8], _ control: PlacementControl) {
        self.name = name
        self.control = control
    }

    var scope: QuiescedCollections? { nil }
    let timeout = Duration.zero

    func prepare() {}

    func transitions(_ catalog: Catalog) throws(CRUDError) -> [Catalog.Transition] {
        let entry = catalog.entry(name)
        try control.refuseSharedOriginals(of: entry.placement)
        guard case .to(let placement) = entry.placement.next(.dropOriginals) else { return [] }
        wasThere = true
        return [Catalog.Transition(name, from: entry, to: placement)]
    }

    func committed() { control.follow(name) }
}

extension PlacementControl {
    /// What one daemon has left behind in storage that others write too is what they serve.
    fileprivate func refuseSharedOriginals(of placement: Placement) throws(CRUDError) {
        let shared = placement.originals.first { backend($0.backend)?.isShared == true }
        guard let shared else { return }
        throw CRUDError(
            .unsupported,
            """
            what the collection has left in \(shared) is what others that write to backend \(shared.backend) serve; it \
            can be dropped by a daemon that has the backend for itself (postgresql: without shared)
            """)
    }
}
