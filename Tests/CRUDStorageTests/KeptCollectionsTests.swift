import CRUDModel
import Testing

@testable import CRUDStorage

/// The collections that are looked after whether or not anybody uses them.
@Suite struct KeptCollectionsTests {
    private let kept = KeptCollections()

    private static func collection(_ number: Int) -> BackendCollection {
        BackendCollection(name: Array("many \(number)".utf8), format: .json)
    }

    private func take(isFirst: Bool = false) -> (isAll: Bool, collections: [BackendCollection]) {
        switch kept.takeChange(isFirst: isFirst) {
        case .all(let collections): (true, collections)
        case .added(let collections): (false, collections)
        }
    }

    /// What follows the list gets the one collection that has come, however many there are.
    @Test func aChangeIsOfOneCollection() {
        let many = (0..<1000).map(Self.collection)
        kept.replace(many)
        #expect(take(isFirst: true).collections.count == 1000)
        let version = kept.version
        kept.replace(many[3].name, with: nil)
        #expect(kept.version == version && !kept.contains(many[3]) && kept.contains(many[4]))
        let other = Self.collection(4)
        kept.replace(other.name, with: other)
        #expect(kept.version != version && kept.contains(other) && !kept.contains(many[4]))
        let change = take()
        #expect(!change.isAll && change.collections.map(ObjectIdentifier.init) == [ObjectIdentifier(other)])
        #expect(take().collections.isEmpty)
    }

    /// A storage that is opened again, and a list that is replaced, begin with all.
    @Test func allAreTakenFirst() {
        kept.replace([Self.collection(1)])
        kept.add(Self.collection(2))
        #expect(take(isFirst: true).collections.count == 2)
        #expect(take().collections.isEmpty)
        kept.remove(named: Self.collection(2).name)
        #expect(take(isFirst: true).collections.count == 1)
        kept.replace([Self.collection(5), Self.collection(6)])
        let change = take()
        #expect(change.isAll && change.collections.count == 2)
    }
}
