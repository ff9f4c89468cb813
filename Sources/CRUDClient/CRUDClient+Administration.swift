import CRUDJSON
import CRUDModel
import CRUDWire

/// Methods that concern the daemon itself.
extension CRUDClient {
    /// Checks that the daemon replies.
    public func ping() async throws {
        _ = try await call(.ping)
    }

    /// The state of the daemon.
    ///
    /// - Throws: ``CRUDError/Code/permissionDenied`` for anybody but admins.
    public func status() async throws -> DaemonStatus {
        try await decoded(call(.status))
    }

    /// The collections that the caller may read.
    public func collections() async throws -> [CollectionDescription] {
        try await list(.listCollections, "collections")
    }

    /// One collection, with the number of its records.
    ///
    /// - Throws: ``CRUDError/Code/collectionNotFound``.
    public func collection(_ name: String) async throws -> CollectionDescription {
        try await decoded(
            call(.describeCollection) { request in request.object { $0.member("collection", name) } })
    }

    /// The backends of the daemon's configuration.
    ///
    /// - Throws: ``CRUDError/Code/permissionDenied`` for anybody but admins.
    public func backends() async throws -> [BackendDescription] {
        try await list(.listBackends, "backends")
    }

    /// The plugins that the daemon has loaded.
    ///
    /// - Throws: ``CRUDError/Code/permissionDenied`` for anybody but admins.
    public func plugins() async throws -> [PluginDescription] {
        try await list(.listPlugins, "plugins")
    }

    /// Calls any method of the protocol, for example `rpc.discover`, which describes them all.
    ///
    /// A method that this version of the client does not know is assumed to write: if the reply is lost, the call
    /// throws ``CRUDError/Code/outcomeUnknown`` and is not sent again.
    ///
    /// - Parameters:
    ///   - method: its name, such as `record.read`.
    ///   - params: JSON text.
    /// - Returns: the result as JSON text, numbers digit for digit.
    /// - Throws: ``CRUDError/Code/parseError`` if `params` is not valid JSON; nothing is sent.
    public func call(_ method: String, params: String = "{}") async throws -> String {
        let params = Array(params.utf8)
        try RawJSON.check(params, what: "params")
        return String(decoding: try await call(method, json: params), as: UTF8.self)
    }

    /// Calls any method of the protocol.
    ///
    /// - Parameter json: the text of `params`, which the caller has checked.
    package func call(_ method: String, json: [UInt8]) async throws -> [UInt8] {
        try await call(RemoteMethod(named: method)) { $0.raw(json) }
    }

    private func list<Element: Decodable>(_ method: RemoteMethod, _ member: StaticString) async throws -> [Element] {
        guard let list = ResultObject(try await call(method))?.value(member) else { throw CRUDError.malformed(method) }
        return try decoded(list)
    }

    private func decoded<Result: Decodable>(_ text: some Sequence<UInt8>) throws -> Result {
        try ItemCoding.item(from: text)
    }
}
