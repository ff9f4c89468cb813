import CRUDTestSupport

/// A request of a client that has no reply yet.
struct ClientRequest {
    enum Kind {
        case record(RecordHistory.Operation, ticket: Int)
        case readMany([(id: Int, ticket: Int)])
        /// A page of a query, and what the pages before it have returned.
        case query(Selection, scan: Int, found: [Int: Item])
        case count(Selection, scan: Int)
    }

    let collection: String
    let kind: Kind
}
