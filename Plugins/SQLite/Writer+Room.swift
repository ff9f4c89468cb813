import CRUDPluginKit

// A transaction for which there is no room is repeated once something has been done about it. What frees room in the
// database, such as a deletion, may use the reserve; what needs room may not, or clients would use it up.
extension Writer {
    /// What a transaction does to the room in the database.
    enum Purpose { case grows, frees }

    /// What has been done for one transaction.
    private struct Measures {
        var extensionBytes = DatabaseRoom.stepBytes
        var hasCheckpointed = false
    }

    /// The most by which the database file is extended at once.
    private static let maximumExtensionBytes = 16 << 20

    /// Runs a transaction, which applies nothing where it throws, until there is room for it or nothing is left to do.
    func withRoom<Result>(
        _ purpose: Purpose, _ transaction: () throws(StorageFailure) -> Result
    ) throws(StorageFailure) -> Result {
        var measures = Measures()
        while true {
            do {
                return try transaction()
            } catch let error where error.status == .noSpace {
                guard makeRoom(purpose, &measures) else { throw error }
            }
        }
    }

    /// Does something about the lack of room that the last statement has met; false if nothing can be done.
    private func makeRoom(_ purpose: Purpose, _ measures: inout Measures) -> Bool {
        if connection.hasReachedPageLimit {
            if purpose == .grows, !reserve.allowsGrowth, !reserve.restore() { return false }
            if database.extend(by: measures.extensionBytes) {
                measures.extensionBytes = min(2 * measures.extensionBytes, Self.maximumExtensionBytes)
                return true
            }
        } else if !measures.hasCheckpointed {
            // The log can be written from its start again.
            measures.hasCheckpointed = true
            if log.checkpoint() { return true }
        }
        guard purpose == .frees, reserve.release() else { return false }
        measures = Measures()
        return true
    }

    // MARK: Batches

    /// Applies a batch in one transaction, which is repeated without each mutation that a trigger refuses. Where there
    /// is no room for all of it, deletions are applied without the rest, and in smaller transactions.
    func write(_ batch: borrowing WriteBatch<SQLiteCollection>) throws(StorageFailure) {
        var refused: Set<Int> = []
        try write(batch, 0..<batch.count, &refused)
    }

    private func write(
        _ batch: borrowing WriteBatch<SQLiteCollection>, _ positions: Range<Int>, _ refused: inout Set<Int>
    ) throws(StorageFailure) {
        let grows = positions.contains { !refused.contains($0) && !batch[$0].frees }
        do {
            while let position = try withRoom(
                grows ? .grows : .frees,
                { () throws(StorageFailure) in try attempt(batch, positions, without: refused) })
            { refused.insert(position) }
        } catch let error where error.status == .noSpace && !batch.isAtomic && positions.count > 1 {
            guard grows else { return try writeHalves(of: batch, positions, &refused) }
            let growing = positions.filter { !batch[$0].frees }
            if growing.count == positions.count { throw error }
            for position in growing where refused.insert(position).inserted { batch.refused(position, .noSpace) }
            try write(batch, positions, &refused)
        }
    }

    /// Each half is a transaction by itself, and so is what becomes of it.
    private func writeHalves(
        of batch: borrowing WriteBatch<SQLiteCollection>, _ positions: Range<Int>, _ refused: inout Set<Int>
    ) throws(StorageFailure) {
        let middle = positions.lowerBound + positions.count / 2
        for half in [positions.lowerBound..<middle, middle..<positions.upperBound] {
            do {
                try write(batch, half, &refused)
            } catch {
                for position in half where !refused.contains(position) { batch.refused(position, error.status) }
            }
        }
    }
}

extension Mutation {
    /// Whether it needs no room in the database.
    fileprivate var frees: Bool { kind == .remove || kind == .check }
}
