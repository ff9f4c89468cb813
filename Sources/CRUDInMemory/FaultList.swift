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
