import CRUDPluginABI

extension Plugin {
    /// What a plugin can do beyond what all can.
    package struct Capabilities: OptionSet, Sendable {
        package let rawValue: UInt64

        package init(rawValue: UInt64) {
            self.rawValue = rawValue
        }

        package static let concurrentReads = Capabilities(rawValue: UInt64(CRUDD_CAN_READ_CONCURRENTLY))
        package static let fastReads = Capabilities(rawValue: UInt64(CRUDD_CAN_READ_FAST))
        package static let transactions = Capabilities(rawValue: UInt64(CRUDD_HAS_TRANSACTIONS))
        package static let durable = Capabilities(rawValue: UInt64(CRUDD_IS_DURABLE))
        package static let indexes = Capabilities(rawValue: UInt64(CRUDD_HAS_INDEXES))
        package static let sequences = Capabilities(rawValue: UInt64(CRUDD_HAS_SEQUENCES))
        package static let expiry = Capabilities(rawValue: UInt64(CRUDD_HAS_EXPIRY))
        package static let takesHistory = Capabilities(rawValue: UInt64(CRUDD_TAKES_HISTORY))
        package static let shared = Capabilities(rawValue: UInt64(CRUDD_IS_SHARED))

        /// Those that this host knows.
        static let known = Capabilities(named.map(\.0))

        /// Their names, as `backend.list` and `collection.describe` show them and children tell them.
        package var names: [String] { Self.named.filter { contains($0.0) }.map { "\($0.1)" } }

        /// The one whose name fits; none where there is none.
        static func capability(where isNamed: (StaticString) -> Bool) -> Capabilities {
            named.first { isNamed($0.1) }?.0 ?? []
        }

        private static let named: [(Capabilities, StaticString)] = [
            (.concurrentReads, "concurrentReads"), (.fastReads, "fastReads"), (.transactions, "transactions"),
            (.durable, "durable"), (.indexes, "indexes"), (.sequences, "sequences"), (.expiry, "expiry"),
            (.takesHistory, "takesHistory"), (.shared, "shared"),
        ]
    }
}
