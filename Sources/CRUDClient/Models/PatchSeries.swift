import CRUDModel

/// Executes any number of patches, each by itself, in few requests.
///
/// They are sent in parts of at most 256 patches or about 1 MiB. An error shall concern as few of them as possible:
/// - The reply has the whole records, which may be much longer than their patches. A patch whose record does not fit
///   into it is rejected, and sent again.
/// - A part that the store rejects because of one patch, with its ``CRUDError/Details/index``, is sent again without
///   it; one that exceeds a limit as a whole is sent again in two halves.
/// - Any other error of a request is the error of all its patches.
///
/// Nothing is sent again that may have been applied. No part has two patches of one record: sent again, the first of
/// them would be applied after the second.
struct PatchSeries {
    private let store: any RecordStore
    private let patches: [RecordOperation]
    /// The positions of the patches that have not been executed, part by part; the last part comes first.
    private var parts: [[Int]]
    private var items: [EncodedItem?]
    private var failure: (position: Int, error: CRUDError)?

    init(_ patches: [RecordOperation], in store: any RecordStore) {
        self.store = store
        self.patches = patches
        parts = Self.parts(of: patches).reversed()
        items = Array(repeating: nil, count: patches.count)
    }

    /// Executes the patches, all of them unless the task is cancelled or a deadline passes.
    ///
    /// - Returns: the new items, in the order of the patches.
    /// - Throws: the error of the first patch that failed, with its position in ``CRUDError/Details/index``.
    mutating func execute() async throws -> [EncodedItem] {
        do {
            while let part = parts.popLast() {
                if !part.isEmpty { try await send(part) }
            }
        } catch {
            throw failure?.error ?? error
        }
        if let failure { throw failure.error }
        return items.compactMap(\.self)
    }

    /// - Throws: an error that the other parts would have, too.
    private mutating func send(_ part: [Int]) async throws {
        let results: [Result<RecordOutcome, CRUDError>]
        do {
            results = try await store.batch(part.map { patches[$0] })
        } catch let error as CRUDError {
            if let index = error.details.index, part.indices.contains(index) {
                fail(part[index], error)
                parts.append(part.filter { $0 != part[index] })
            } else if error.code == .limitExceeded, part.count > 1 {
                divide(part)
            } else {
                fail(part[0], error)
                if error.cause is DeadlineExceeded { throw error }
            }
            return
        }
        var rejected: [Int] = []
        for (position, result) in zip(part, results) {
            switch result {
            case .success(let outcome):
                items[position] = outcome.item
                if outcome.item == nil { fail(position, .malformed(.batch)) }
            case .failure(let error) where error.details.limit == "frame_bytes" && part.count > 1:
                rejected.append(position)
            case .failure(let error):
                fail(position, error)
            }
        }
        if rejected.count < part.count { parts.append(rejected) } else { divide(rejected) }
    }

    private mutating func divide(_ part: [Int]) {
        let half = part.count / 2
        parts += [Array(part[half...]), Array(part[..<half])]
    }

    private mutating func fail(_ position: Int, _ error: CRUDError) {
        if let failure, failure.position < position { return }
        failure = (position, error.at(position))
    }

    private static func parts(of patches: [RecordOperation]) -> [[Int]] {
        var parts: [[Int]] = []
        var part: [Int] = []
        var bytes = 0
        // By bytes: String's own equality takes canonically equivalent ids for one.
        var ids: Set<[UInt8]> = []
        for (position, patch) in patches.enumerated() {
            let id = Array(patch.id.utf8)
            if part.count == 256 || bytes > 1 << 20 || ids.contains(id) {
                parts.append(part)
                (part, bytes, ids) = ([], 0, [])
            }
            part.append(position)
            ids.insert(id)
            if case .patch(let item, _, _) = patch.action { bytes += item.bytes.count }
        }
        return parts + [part]
    }
}
