import CRUDModel
import CRUDQuery

@testable import CRUDStorage

extension SearchRequest {
    /// A search over all records of a collection, as `change` narrows it down.
    static func all(_ kind: Kind, _ change: (inout Query) -> Void = { _ in }) -> SearchRequest {
        var query = Query()
        change(&query)
        return SearchRequest(kind, query, maximumBytes: 1 << 20, maximumItemBytes: 1 << 20, timeout: .seconds(10))
    }
}
