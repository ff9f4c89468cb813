/// A method of the protocol. Its row of ``MethodTable`` has its parameters and its result.
package enum Method: Int, CaseIterable, Sendable {
    case recordCreate, recordRead, recordUpdate, recordDelete, recordUpsert, recordPatch, recordTouch
    case recordExists, recordReadMany, recordQuery, recordCount, recordDeleteMatching, recordBatch
    case collectionList, collectionDescribe, collectionChanges, collectionDrop, collectionReindex
    case backendList, backendBackup, pluginList
    case sessionHello, sessionWhoami, accessCheck, daemonPing, daemonStatus, daemonMetrics, daemonSlowLog
    case daemonConfiguration, daemonLogLevel
    case sessionList, sessionClose, requestCancel
    case daemonReload, discover

    /// Its row of the table.
    package var definition: MethodDefinition { MethodTable.definitions[rawValue] }

    /// Its name on the wire.
    package var name: StaticString { definition.name }

    /// Whether `ttl` may be null: the record does not expire any more.
    var takesNullTTL: Bool { self == .recordPatch || self == .recordTouch }
}

/// The permissions that a method requires.
package enum MethodAccess: String, Sendable {
    /// None; the result depends on what the peer may read.
    case everybody
    /// To read the collection.
    case read
    /// To write the collection.
    case write
    /// To read and to write the collection.
    case readWrite = "read and write"
    /// Those of its operations.
    case operations = "as its operations"
    /// To administer the daemon.
    case admin
}

/// A row of the method table.
package struct MethodDefinition: Sendable {
    package var method: Method
    package var name: StaticString
    package var summary: String
    package var access: MethodAccess
    package var required: [Parameter]
    package var optional: [Parameter]
    /// Those optional parameters of which at least one is required; empty: none is.
    package var alternatives: [Parameter]
    /// The JSON Schema of the result, as text.
    package var result: String
    /// The names of the errors that the method has besides the general ones.
    package var errors: [String]

    /// The part of this row that dispatch needs.
    package let traits: MethodTraits

    init(
        _ method: Method, _ name: StaticString, _ access: MethodAccess, _ summary: String, required: [Parameter] = [],
        optional: [Parameter] = [], alternatives: [Parameter] = [], result: String, errors: [String] = []
    ) {
        self.method = method
        self.name = name
        self.summary = summary
        self.access = access
        self.required = required
        self.optional = alternatives + optional
        self.alternatives = alternatives
        self.result = result
        self.errors = errors
        traits = MethodTraits(
            method: method, name: name, access: access, required: required.reduce(0) { $0 | $1.mask },
            alternatives: alternatives.reduce(0) { $0 | $1.mask },
            allowed: (required + alternatives + optional).reduce(0) { $0 | $1.mask })
    }
}

/// The part of a row of the method table that dispatch needs. It has no references, so that copying it is free.
package struct MethodTraits: Sendable {
    package var method: Method
    package var name: StaticString
    package var access: MethodAccess
    /// A bit for each required parameter.
    var required: UInt64
    /// A bit for each parameter of which at least one is required; 0: none is.
    var alternatives: UInt64
    /// A bit for each required or optional parameter.
    var allowed: UInt64

    /// The first parameter that must be there and is not among those present.
    func missing(from present: UInt64) -> Parameter? {
        let missing = required & ~present | (alternatives & present == 0 ? alternatives : 0)
        return missing == 0 ? nil : Parameter(rawValue: missing.trailingZeroBitCount)
    }
}
