import CRUDClient
import CRUDModel
import Synchronization

/// The faults that the calls of a database are to have.
final class FaultList: Sendable {
    private struct Entry {
        let fault: Fault
        /// To how many calls it still happens; nil: to any number.
        var times: Int?
        let collection: String?
    }

    /// Whether a call changes something.
    enum Effect {
        case reads, writes
    }

    private let entries = Mutex<[Entry]>([])

    func add(_ fault: Fault, times: Int?, in collection: String?) {
        guard times.map({ $0 > 0 }) ?? true else { return }
        entries.withLock { $0.append(Entry(fault: fault, times: times, collection: collection)) }
    }

    func removeAll() {
        entries.withLock { $0.removeAll() }
    }

    /// The faults of a call: how long it is delayed, and what ends it.
    func take(_ effect: Effect, _ collection: String) -> (delay: Duration?, end: Fault?) {
        entries.withLock { entries in
            guard !entries.isEmpty else { return (nil, nil) }
            var (delay, end): (Duration?, Fault?) = (nil, nil)
            for index in entries.indices {
                let entry = entries[index]
                if let name = entry.collection, !name.utf8.elementsEqual(collection.utf8) { continue }
                switch entry.fault {
                case .slow(let duration):
                    guard delay == nil else { continue }
                    delay = duration
                case .lostRequest, .lostReply:
                    guard effect == .writes else { continue }
                    fallthrough
                case .unavailable:
                    guard end == nil else { continue }
                    end = entry.fault
                }
                entries[index].times = entry.times.map { $0 - 1 }
            }
            entries.removeAll { $0.times == 0 }
            return (delay, end)
        }
    }
}

extension InMemoryDatabase {
    /// Executes a call with the faults that it is to have, after other tasks have run.
    func call<Value>(
        _ effect: FaultList.Effect, in collection: String, _ execute: () async throws -> Value
    ) async throws -> Value {
        try RequestCheck.task()
        await Task.yield()
        let (delay, end) = faults.take(effect, collection)
        if let delay { try await wait(delay, effect) }
        switch end {
        case nil, .slow: return try await execute()
        case .unavailable: throw CRUDError(.unavailable, "the test has made the database unavailable")
        case .lostRequest: throw Self.outcomeUnknown("was lost before it was executed")
        case .lostReply:
            // Its reply may have been an error.
            _ = try? await execute()
            throw Self.outcomeUnknown("was executed, and its reply was lost")
        }
    }

    private func wait(_ delay: Duration, _ effect: FaultList.Effect) async throws {
        do {
            try await sleep(for: delay)
            try RequestCheck.task()
        } catch {
            guard effect == .writes else { throw error }
            let cause: any Error = (error as? CRUDError)?.cause ?? error
            throw Self.outcomeUnknown("was slow", cause: cause)
        }
    }

    private static func outcomeUnknown(_ what: String, cause: (any Error)? = nil) -> CRUDError {
        CRUDError(.outcomeUnknown, "the test has made the outcome unknown: the write \(what)", cause: cause)
    }
}
