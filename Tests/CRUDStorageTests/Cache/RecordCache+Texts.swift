@testable import CRUDStorage

/// What the cache says of a record.
enum Cached: Equatable {
    case record(item: String, revision: String)
    case absent, unknown
}

extension RecordCache {
    func cached(_ id: String, _ key: CacheKey) -> Cached {
        var found = Cached.unknown
        switch outcome(id, key, { found = .record(item: $0, revision: $1) }) {
        case .found: return found
        case .absent: return .absent
        case .miss: return .unknown
        }
    }

    func outcome(_ id: String, _ key: CacheKey, _ body: (String, String) -> Void = { _, _ in }) -> CacheOutcome {
        find(key, Array(id.utf8).span) { record in
            body(String(decoding: record.item, as: UTF8.self), String(decoding: record.revision, as: UTF8.self))
        }
    }

    /// What allows to fill a record; nil if it is cached or written.
    func ticket(_ id: String, _ key: CacheKey) -> CacheTicket? {
        if case .miss(let ticket) = outcome(id, key) { ticket } else { nil }
    }

    /// - Parameter item: nil: there is no record.
    func fill(_ ticket: CacheTicket?, _ id: String, _ item: String?, revision: String = "r", expiresAt: Int64 = 0) {
        guard let ticket else { return }
        withRecord(id, item, revision, expiresAt) { fill(ticket, $0) }
    }

    func beginWrite(_ id: String, _ key: CacheKey) {
        Array(id.utf8).withUnsafeBytes { beginWrite(key.collection, $0) }
    }

    /// - Parameter item: nil: it is not known what is there.
    func endWrite(_ id: String, _ key: CacheKey, _ item: String?, revision: String = "w") {
        withRecord(id, item, revision, 0) { record in
            endWrite(key, record.id, record.isAbsent ? nil : record)
        }
    }

    private func withRecord(
        _ id: String, _ item: String?, _ revision: String, _ expiresAt: Int64, _ body: (CacheRecord) -> Void
    ) {
        Array(id.utf8).withUnsafeBytes { id in
            guard let item else { return body(CacheRecord(absent: id)) }
            Array(item.utf8).withUnsafeBytes { item in
                Array(revision.utf8).withUnsafeBytes { revision in
                    body(CacheRecord(id: id, item: item, revision: revision, expiresAt: expiresAt))
                }
            }
        }
    }
}
