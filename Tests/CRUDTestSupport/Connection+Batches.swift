import Glibc

/// What a record of the collection `c` was read as, and operations of a batch that are refused where that has changed.
struct FoundRecord {
    private let id: String
    let item: Item?
    private let revision: String?

    fileprivate init(_ id: String, _ reply: Reply) {
        self.id = id
        item = Item(reply.result?["item"])
        revision = reply.result?["revision"]?.string
    }

    var check: String {
        Connection.params("c", id, more: ["op": #""check""#, "ifRevision": revision.map(JSON.quote) ?? "null"])
    }

    func writing(_ number: Int) -> String {
        Connection.params(
            "c", id, item: Item(number: number).json, ifRevision: revision,
            more: ["op": revision == nil ? #""create""# : #""update""#])
    }
}

extension Connection {
    /// Reads a record of the collection `c`.
    ///
    /// - Returns: nil while it cannot be read.
    func find(_ id: String) throws -> FoundRecord? {
        let reply = try read("c", id)
        switch reply.error?.name {
        case nil, "record_not_found":
            let found = FoundRecord(id, reply)
            guard found.item != nil || reply.result == nil else {
                throw Violation(description: "not an item: \(reply)")
            }
            return found
        case "unavailable":
            poll(nil, 0, 5)
            return nil
        default: throw Failure("\(reply)")
        }
    }

    /// Executes an atomic batch, and waits a little where its backend cannot.
    ///
    /// - Parameter operations: JSON objects.
    func atomicBatch(_ operations: [String]) throws -> BatchHistory.Outcome {
        let reply = try call("record.batch", #"{"atomic":true,"operations":[\#(operations.joined(separator: ","))]}"#)
        switch reply.error?.name {
        case nil: return .applied
        case "revision_mismatch", "record_exists", "record_not_found": return .refused
        case "unavailable", "outcome_unknown":
            poll(nil, 0, 5)
            return reply.error?.name == "unavailable" ? .refused : .unknown
        default: throw Failure("\(reply)")
        }
    }
}
