import CRUDModel

extension RecordStore {
    public func changes(_ query: ChangeQuery) async throws -> ChangePage {
        throw CRUDError(.unsupported, "this store does not remember the changes of \(collection)")
    }
}
