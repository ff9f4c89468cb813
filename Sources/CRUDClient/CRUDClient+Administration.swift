import CRUDJSON
import CRUDModel
import CRUDWire

/// Methods that concern the daemon itself.
extension CRUDClient {
    /// Checks that the daemon replies.
    public func ping() async throws {
        _ = try await call(.ping)
    }

    /// The collections that the caller may read.
    public func collections() async throws -> [CollectionDescription] {
        guard let list = ResultObject(try await call(.listCollections))?.value("collections") else {
            throw CRUDError.malformed(.listCollections)
        }
        return try ItemCoding.item(from: list)
    }

    /// One collection, with the number of its records.
    ///
    /// - Throws: ``CRUDError/Code/collectionNotFound``.
    public func collection(_ name: String) async throws -> CollectionDescription {
        let result = try await call(.describeCollection, on: CallSubject(collection: name)) { request in
            request.object { $0.member("collection", name) }
        }
        return try ItemCoding.item(from: result)
    }

    /// Calls any method of the protocol, for example `daemon.status`, or `rpc.discover`, which describes them all.
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
}
