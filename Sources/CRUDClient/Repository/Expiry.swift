#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a write does to the expiry of its record, in a ``RecordOperation`` and in ``RecordStore``'s patches.
public enum Expiry: Sendable, Hashable {
    /// The record does not expire.
    case never
    /// The record expires that long after the write, by the clock of the store. To the millisecond, above zero, at most
    /// 100 years.
    case after(Duration)
    /// The record expires at that instant, as one that was read elsewhere (``Versioned/expiresAt``). To the
    /// millisecond, after 1970-01-01, before the year 10000. One that has passed gives a record that is not there.
    case at(Date)

    /// - Parameter duration: nil: never.
    init(expiresIn duration: Duration?) {
        self = duration.map(Self.after) ?? .never
    }

    /// The instant of ``at(_:)`` in milliseconds since 1970-01-01 UTC; 0, which is none, if it is not one.
    package static func milliseconds(_ instant: Date) -> Int {
        Int(exactly: (instant.timeIntervalSince1970 * 1000).rounded()) ?? 0
    }
}
