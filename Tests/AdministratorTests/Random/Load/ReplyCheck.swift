import CRUDTestSupport

/// Compares a reply with the history of its collection.
struct ReplyCheck {
    let reply: Reply
    let request: ClientRequest

    /// Errors with which nothing was done.
    static let refusals: Set<String> = ["unavailable", "no_space"]

    /// - Returns: the request of the next page of a query.
    func execute(on history: inout CollectionHistory) throws -> ClientRequest.Kind? {
        if reply.result?["corrupt"] != nil { throw violation("corrupt records") }
        switch request.kind {
        case .record(let operation, let ticket): try history.end(ticket, try outcome(of: operation))
        case .readMany(let reads): try checkReads(reads, &history)
        case .query(let selection, let scan, var found):
            guard try add(to: &found, isWhole: selection.isWhole, isSorted: selection.isSorted) else {
                try history.endScan(scan)
                return nil
            }
            if reply.result?["cursor"] != nil { return .query(selection, scan: scan, found: found) }
            try history.endScan(
                scan, found: found, isSorted: selection.isSorted, isSelected: selection.contains)
        case .count(let selection, let scan):
            guard let count = reply.result?["count"]?.integer else {
                try checkError()
                try history.endScan(scan)
                return nil
            }
            try history.endCount(
                scan, count, isSorted: selection.isByMember, isSelected: selection.contains)
        }
        return nil
    }

    private func outcome(of operation: RecordHistory.Operation) throws -> RecordHistory.Outcome {
        guard let result = reply.result else {
            switch (reply.error?.name ?? "", operation) {
            case ("record_exists", .create): return .exists
            case ("record_not_found", .read): return .returned(nil)
            case ("record_not_found", .update), ("record_not_found", .patch), ("record_not_found", .delete):
                return .missing
            case ("outcome_unknown", _): return .unknown
            default:
                try checkError()
                return .refused
            }
        }
        switch operation {
        case .read, .patch:
            guard let item = Item(result["item"]) else { throw violation("not an item") }
            return .returned(item)
        case .exists: return result["exists"]?.boolean == true ? .exists : .missing
        default: return .done
        }
    }

    private func checkReads(_ reads: [(id: Int, ticket: Int)], _ history: inout CollectionHistory) throws {
        var found: [Int: Item] = [:]
        guard try add(to: &found, isWhole: true) else {
            for read in reads { try history.end(read.ticket, .refused) }
            return
        }
        let missing = reply.result?["missing"]?.elements?.compactMap { ClientLoad.number(ofID: $0.string) } ?? []
        guard Set(missing).union(found.keys) == Set(reads.map(\.id)), missing.count + found.count == reads.count else {
            throw violation("other ids were asked for")
        }
        for read in reads { try history.end(read.ticket, .returned(found[read.id])) }
    }

    /// - Parameter isSorted: a record that changes meanwhile may be met at its old and at its new rank.
    /// - Returns: false if the request has failed.
    private func add(to found: inout [Int: Item], isWhole: Bool, isSorted: Bool = false) throws -> Bool {
        guard let records = reply.result?["records"]?.elements else {
            try checkError()
            return false
        }
        for record in records {
            guard let id = ClientLoad.number(ofID: record["id"]?.string),
                let item = Item(record["item"], isWhole: isWhole),
                found[id].map({ isSorted && $0 != item }) ?? true
            else { throw violation("not a record, or twice: \(record.text.prefix(300))") }
            found[id] = item
        }
        return true
    }

    private func checkError() throws {
        let name = reply.error?.name ?? ""
        guard Self.refusals.contains(name) || name == "outcome_unknown" else { throw violation("not to be expected") }
    }

    private func violation(_ text: String) -> Violation {
        Violation(description: "\(request.collection): \(text): \(String("\(reply)".prefix(400))) to \(request.kind)")
    }
}
