/// What a `crudd.yaml` says: defaults filled in, every name resolved, every range checked.
///
/// A value of this type is free of faults; ``load(path:environment:)`` answers either one of these or everything
/// that is wrong with the file.
package struct Configuration: Sendable {
    /// The path of the file, as it was given; faults found later name it.
    package let file: String
    /// Where the daemon keeps what it has to remember. Absolute.
    package let stateDirectory: String
    package let socket: Socket
    /// Where plugins are looked for, in this order. Absolute paths.
    package let pluginDirectories: [String]
    /// At least one, in the order of the file, no name twice.
    package let backends: [BackendConfiguration]
    package let collections: CollectionRules
    package let access: AccessPolicy
    package let limits: Limits
    package let logLevel: LogLevel
}

extension Configuration {
    /// Where the daemon listens unless systemd hands it a socket.
    package struct Socket: Sendable, Hashable {
        /// The most bytes of a path that fit `sockaddr_un` with its final NUL (unix(7)).
        package static let maximumPathBytes = 107

        /// Absolute, at most ``maximumPathBytes`` bytes.
        package var path = "/run/crudd/crudd.sock"
        /// Permission bits, at most 0o777.
        package var mode: UInt32 = 0o660
        /// The group that the socket file is given; nil leaves the daemon's own.
        package var group: SocketGroup?

        /// The defaults.
        package init() {}
    }

    /// A group as the file names it, and its number.
    package struct SocketGroup: Sendable, Hashable {
        package let name: String
        package let id: UInt32
    }

    /// How much the daemon logs: this level and those above it.
    package enum LogLevel: String, Sendable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    /// What a peer may make the daemon spend; section `limits`.
    package struct Limits: Sendable, Hashable {
        /// The longest frame, either way.
        package var frameBytes = 16 << 20
        /// The largest item; at most half of ``frameBytes``, which is also its default where that is less than 4 MiB.
        package var itemBytes = 4 << 20
        /// How deeply an item, a patch or a filter may nest.
        package var jsonDepth = 128
        /// The largest `limit` of a query.
        package var queryLimit = 10_000
        /// The most elements of a batch array, of `operations`, of `ids`.
        package var batch = 1000
        /// The most collections that globs may bring into being.
        package var collections = 10_000
        package var sessions = 1024
        package var sessionsPerUser = 256
        /// The most requests under way before a session is no longer read from.
        package var inflightPerSession = 256
        /// The most bytes of requests and replies buffered for one session before it is no longer read from.
        package var sessionBytes = 64 << 20
        /// The same over all sessions.
        package var bufferBytes = 512 << 20
        /// How long a session may say nothing; nil: for ever.
        package var idleTimeout: Duration?
        /// How long a request may take before it is answered with an error.
        package var requestTimeout: Duration = .seconds(30)

        /// The defaults.
        package init() {}
    }
}
