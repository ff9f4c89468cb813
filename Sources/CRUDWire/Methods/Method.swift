/// A method of the protocol. What it takes and answers is its row of ``MethodTable``.
package enum Method: Int, CaseIterable, Sendable {
    case recordCreate, recordRead, recordUpdate, recordDelete, recordUpsert, recordPatch
    case recordExists, recordReadMany, recordQuery, recordCount, recordDeleteMatching, recordBatch
    case collectionList, collectionDescribe
    case backendList, pluginList
    case sessionHello, daemonPing, daemonStatus, daemonReload
    case discover

    /// Its row of the table.
    package var definition: MethodDefinition { MethodTable.definitions[rawValue] }

    /// Its name on the wire.
    package var name: StaticString { definition.name }
}

/// What a peer must be allowed to do for a method to be carried out.
package enum MethodAccess: String, Sendable {
    /// Nothing; the method tells everybody what it may know.
    case everybody
    /// To read the collection.
    case read
    /// To write the collection.
    case write
    /// To read and to write the collection.
    case readWrite = "read and write"
    /// What each of its operations demands.
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
    /// The JSON Schema of the result, as text.
    package var result: String
    /// The names of the errors that the method has beside the general ones.
    package var errors: [String]

    /// What dispatch needs of this row.
    package let traits: MethodTraits

    init(
        _ method: Method, _ name: StaticString, _ access: MethodAccess, _ summary: String, required: [Parameter] = [],
        optional: [Parameter] = [], result: String, errors: [String] = []
    ) {
        self.method = method
        self.name = name
        self.summary = summary
        self.access = access
        self.required = required
        self.optional = optional
        self.result = result
        self.errors = errors
        traits = MethodTraits(
            method: method, name: name, access: access, required: required.reduce(0) { $0 | $1.mask },
            allowed: (required + optional).reduce(0) { $0 | $1.mask })
    }
}

/// What dispatch needs of a row of the method table: nothing that is counted, so that it is copied for free.
package struct MethodTraits: Sendable {
    package var method: Method
    package var name: StaticString
    package var access: MethodAccess
    /// A bit for each parameter that must be there.
    var required: UInt32
    /// A bit for each parameter that may be there.
    var allowed: UInt32
}
