package import CRUDModel

/// The contents of a `crudd.yaml`: defaults filled in, every name resolved, every range checked.
///
/// A value of this type is free of errors; ``load(path:environment:)`` returns one, or throws all errors of the file.
package struct Configuration: Sendable {
    /// The path of the file, as it was given; errors that are found later name it.
    package let file: String
    /// Where the values are that only a start can find to be wrong.
    package let positions: Positions
    /// Where the daemon keeps its own state. Absolute.
    package let stateDirectory: String
    package let socket: Socket
    /// Where plugins are searched for, in this order. Absolute paths.
    package let pluginDirectories: [String]
    /// At least one, in the order of the file, no name twice.
    package let backends: [BackendConfiguration]
    package let collections: CollectionRules
    package let access: AccessPolicy
    /// How many event loops serve requests, 1 to 16; nil: as many as suit the machine.
    package let loops: Int?
    /// How much memory the record cache may take, over all backends; 0: none is cached.
    package let cacheBytes: Int
    /// How long a thread spins for the next request before it sleeps, where that has paid lately; zero: never.
    package let busyPoll: Duration
    package let limits: Limits
    package private(set) var logLevel: LogLevel
    /// Requests that take longer are logged and kept for `daemon.slowLog`; zero: none are.
    package let slowRequest: Duration
    /// The whole file.
    let root: YAMLNode
    /// Whether ``logLevel`` is another than the file's.
    private(set) var hasOwnLogLevel = false

    /// The same with another log level.
    package func logging(at level: LogLevel) -> Configuration {
        var configuration = self
        configuration.logLevel = level
        configuration.hasOwnLogLevel = true
        return configuration
    }
}

extension Configuration {
    /// Where values are in the file; the beginning where it does not have them.
    package struct Positions: Sendable {
        package var stateDirectory = SourcePosition.start
        package var socketPath = SourcePosition.start
        package var socketGroup = SourcePosition.start
    }

    /// Where the daemon listens unless systemd passes it a socket.
    package struct Socket: Sendable, Hashable {
        /// The most bytes of a path that fits into `sockaddr_un` with its final NUL (unix(7)).
        package static let maximumPathBytes = 107

        /// Absolute, at most ``maximumPathBytes`` bytes.
        package var path = "/run/crudd/crudd.sock"
        /// Permission bits, at most 0o777.
        package var mode: UInt32 = 0o660
        /// The group of the socket file; nil: the daemon's own.
        package var group: SocketGroup?

        /// The defaults.
        package init() {}
    }

    /// A group as the file names it, and its number.
    package struct SocketGroup: Sendable, Hashable {
        package let name: String
        package let id: UInt32
    }

    /// Where the state is where neither the file nor systemd says.
    static let defaultStateDirectory = "/var/lib/crudd"
    /// How much memory the record cache may take where the file does not say.
    static let defaultCacheBytes = 64 << 20
    /// How many microseconds a thread spins where the file does not say.
    static let defaultBusyPollMicroseconds = 200

    /// How long a request takes at least to be called slow, where the file does not say.
    static let defaultSlowRequestMicroseconds = 100_000

    /// How much the daemon logs: this level and those above it.
    package enum LogLevel: String, Sendable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    /// Limits on what a peer may make the daemon do and hold; section `limits`.
    package struct Limits: Sendable, Hashable {
        /// The longest frame, either way.
        package var frameBytes = DefaultLimits.frameBytes
        /// The largest item; at most half of ``frameBytes``, which is also its default where that is less than 4 MiB.
        package var itemBytes = DefaultLimits.itemBytes
        /// How deeply an item, a patch or a filter may nest.
        package var jsonDepth = DefaultLimits.jsonDepth
        /// The largest `limit` of a query.
        package var queryLimit = DefaultLimits.queryLimit
        /// The most elements of a batch array, of `operations`, of `ids`.
        package var batch = DefaultLimits.batch
        /// The most collections that exist because of a glob.
        package var collections = 10_000
        package var sessions = 1024
        package var sessionsPerUser = 256
        /// The most requests of a session that are in flight; at the limit it is not read from.
        package var inflightPerSession = 256
        /// The most requests of a session that wait for changes; they are not in flight.
        package var followersPerSession = 1024
        /// The most bytes of requests and replies that are buffered for one session; at the limit it is not read from.
        package var sessionBytes = 64 << 20
        /// The same over all sessions.
        package var bufferBytes = 512 << 20
        /// How long a session may be idle; nil: for ever.
        package var idleTimeout: Duration?
        /// How long a request may take before it fails.
        package var requestTimeout = DefaultLimits.requestTimeout

        /// The defaults.
        package init() {}
    }
}
