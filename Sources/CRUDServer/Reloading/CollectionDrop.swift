import CRUDConfiguration
import CRUDModel
import CRUDStorage
import Logging

/// One execution of `collection.drop`: every loop **quiesces** the collection, its backend is **drained**, and nothing
/// reads or writes it while the backend drops it. Then its requests resume, and find a collection without records.
struct CollectionDrop {
    private let service: Service
    private let loops: LoopGroup
    private let name: [UInt8]

    /// How long each step may take. A backend that hangs must not keep reloads waiting, nor the collection's requests.
    private static let timeout = Duration.seconds(10)
    /// How long it may take to remove what nobody's requests wait for: each record may be a file.
    private static let removalTimeout = Duration.seconds(600)

    init(of name: [UInt8], from service: Service, _ loops: LoopGroup) {
        self.service = service
        self.loops = loops
        self.name = name
    }

    /// - Returns: whether there was anything to drop.
    func execute(_ request: DropRequest) throws(CRUDError) -> Bool {
        if request.isOfOriginals { return try dropOriginals() }
        guard let rule = service.rules.rule(for: name.span), let backend = backend(rule.backend) else {
            // A reload came first.
            throw CRUDError(.collectionNotFound, "no rule of the configuration maps this collection")
        }
        service.mover.stop { $0.name == name }
        defer { service.mover.follow(service.backends) }
        if request.requiresEmpty, try backend.hasRecords(name, rule.format, within: Self.timeout) {
            throw CRUDError(.recordExists, "the collection has records")
        }
        // What is elsewhere comes first, for nobody would know of it afterwards. No request waits for that.
        _ = try dropOriginals()
        try dropCopies()
        guard loops.quiesce(.one(name), within: Self.timeout) != nil else {
            throw CRUDError(.unavailable, "backend \(backend.name) does not finish its reads")
        }
        return try backend.drop(name, isEmpty: request.requiresEmpty, within: Self.timeout) { [service, name] in
            do throws(SystemError) {
                try service.catalog.forget(name)
            } catch {
                service.logger.warning("\(error)")
            }
        }
    }

    // MARK: Moves

    /// Drops what its moves have left behind.
    private func dropOriginals() throws(CRUDError) -> Bool {
        var isDropped = false
        while let place = service.catalog.entry(named: name)?.originals.last {
            isDropped = try remove(place) || isDropped
            try update { $0.originals.removeLast() }
        }
        return isDropped
    }

    /// Removes what a move that is not over has copied.
    private func dropCopies() throws(CRUDError) {
        guard let move = service.catalog.entry(named: name)?.move else { return }
        if move.state != .planned {
            try update { $0.move?.state = .removing }
            _ = try remove(move.destination)
        }
        try update { $0.move = nil }
    }

    /// Removes the collection's records from a place that it is not served from.
    private func remove(_ place: CollectionPlace) throws(CRUDError) -> Bool {
        guard let entry = service.catalog.entry(named: name), let backend = backend(place.backend) else {
            throw CRUDError(
                .unavailable, "\(place) has records of it, and the configuration does not have that backend")
        }
        let others = [entry.place] + [entry.move?.destination].compactMap(\.self) + entry.originals
        let isShared = others.contains { $0.backend == place.backend && $0 != place }
        return try backend.removeRecords(of: name, in: place.format, isShared: isShared, within: Self.removalTimeout)
    }

    private func update(_ change: (inout CollectionCatalog.Entry) -> Void) throws(CRUDError) {
        do throws(SystemError) {
            try service.catalog.update(name, change)
        } catch {
            throw CRUDError(.noSpace, "\(error)")
        }
    }

    private func backend(_ name: String) -> Backend? { service.backends.first { $0.name == name } }
}
