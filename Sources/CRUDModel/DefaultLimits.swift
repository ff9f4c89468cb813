/// The limits of PROTOCOL.md, "Limits and back-pressure", as they are unless the configuration says otherwise.
package enum DefaultLimits {
    /// The longest frame, either way.
    package static let frameBytes = 16 << 20
    /// The most that ``frameBytes`` can be raised to.
    package static let maximumFrameBytes = 1 << 30
    /// The largest item.
    package static let itemBytes = 4 << 20
    /// How deeply an item, a patch or a filter may nest.
    package static let jsonDepth = 128
    /// The largest `limit` of a query.
    package static let queryLimit = 10_000
    /// The `limit` of a query that gives none; the configuration does not change it.
    package static let pageRecords = 1000
    /// The most elements of a batch array, of `operations`, of `ids`.
    package static let batch = 1000
    /// How long a request may take before it fails.
    package static let requestTimeout = Duration.seconds(30)
    /// The longest time after which a record expires, a hundred years; the configuration does not change it.
    package static let ttlSeconds = 3_155_760_000
    /// When a record expires at the latest, the end of the year 9999, in milliseconds since 1970-01-01 UTC; the
    /// configuration does not change it.
    package static let latestExpiry = 253_402_300_799_999
    /// The longest time for which a reply is held back; the configuration does not change it.
    package static let waitSeconds = 300
}
