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

    init(of name: [UInt8], from service: Service, _ loops: LoopGroup) {
        self.service = service
        self.loops = loops
        self.name = name
    }

    /// - Returns: whether the collection was there.
    func execute(requiresEmpty: Bool) throws(CRUDError) -> Bool {
        guard let rule = service.configuration.collections.rule(for: name.span),
            let backend = service.backends.first(where: { $0.name == rule.backend })
        else {
            // A reload came first.
            throw CRUDError(.collectionNotFound, "no rule of the configuration maps this collection")
        }
        defer { loops.serve(service) }
        guard loops.quiesce(QuiescedCollections(collection: name), within: Self.timeout) else {
            throw CRUDError(.unavailable, "backend \(backend.name) does not finish its reads")
        }
        let collection = BackendCollection(name: name, rule: rule)
        return try backend.drop(collection, isEmpty: requiresEmpty, within: Self.timeout) { [service, name] in
            do throws(SystemError) {
                try service.catalog.forget(name)
            } catch {
                service.logger.warning("\(error)")
            }
        }
    }
}
