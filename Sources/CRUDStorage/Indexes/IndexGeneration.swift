import CRUDModel

/// The state of a collection's indexes when a search has begun.
struct IndexGeneration {
    private let indexes: IndexSet?
    private let generation: Int

    init(of collection: BackendCollection) {
        indexes = collection.indexes
        generation = indexes?.generation ?? 0
    }

    /// Executes a slice of a search.
    ///
    /// - Throws: `unavailable` where the indexes have been replaced before or meanwhile, so that the slice may have
    ///   missed records; else what `slice` throws.
    func whileValid<Result>(_ slice: () throws(CRUDError) -> Result) throws(CRUDError) -> Result {
        do throws(CRUDError) {
            try check()
            let result = try slice()
            try check()
            return result
        } catch {
            try check()
            throw error
        }
    }

    /// - Throws: `unavailable` where the indexes have been replaced.
    func check() throws(CRUDError) {
        guard indexes?.generation ?? 0 != generation else { return }
        throw CRUDError(.unavailable, "the collection's indexes have been replaced meanwhile")
    }
}
