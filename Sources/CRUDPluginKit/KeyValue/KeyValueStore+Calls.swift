/// The calls of a store as the kit makes them: they throw a ``StorageFailure``, and what they return has a bound.
extension KeyValueStore {
    /// How many bytes of values are read before a list of pairs ends, with the value that exceeds them.
    private static var valueBytesAtOnce: Int { 1 << 20 }

    static func open(options: Options, host: Host) throws(StorageFailure) -> Self {
        do { return try Self(options: options, host: host) } catch { throw StorageFailure(error, else: .unavailable) }
    }

    func storedValue(for key: StoredKey) throws(StorageFailure) -> [UInt8]? {
        do { return try value(for: key) } catch { throw StorageFailure(error, else: .internal) }
    }

    /// The first pairs of a range, at least one if there is one; fewer than `limit` where the values are large. Pairs
    /// without values, such as those of an order, are as many as there are up to `limit`.
    func storedPairs(
        in range: Range<StoredKey>, isReversed: Bool = false, limit: Int
    ) throws(StorageFailure) -> [(key: StoredKey, value: [UInt8])] {
        if range.isEmpty || limit == 0 { return [] }
        var pairs: [(key: StoredKey, value: [UInt8])] = []
        var valueBytes = 0
        do {
            try scan(range, isReversed: isReversed) { key, value in
                pairs.append((key, value))
                valueBytes += value.count
                return pairs.count < limit && valueBytes < Self.valueBytesAtOnce
            }
        } catch {
            throw StorageFailure(error, else: .internal)
        }
        return pairs
    }

    /// Applies changes. After an error that is no ``StorageFailure`` nobody knows what the store contains, or shows:
    /// it is reported lost, so that the host opens it again.
    func change(_ changes: [StoredKey: [UInt8]?], _ host: Host) throws(StorageFailure) {
        do {
            try apply(changes)
        } catch let failure as StorageFailure {
            throw failure
        } catch {
            host.state(.down, "\(error)")
            throw StorageFailure(.outcomeUnknown, "\(error)")
        }
    }
}

extension StorageFailure {
    /// - Parameter status: of an error that is no ``StorageFailure``.
    fileprivate init(_ error: any Error, else status: Status) {
        self = error as? StorageFailure ?? StorageFailure(status, "\(error)")
    }
}
