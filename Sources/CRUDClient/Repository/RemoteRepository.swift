import CRUDJSON
import CRUDModel
import CRUDWire

/// The records of one collection in the daemon.
///
/// It consists of a name and a client: creating one costs nothing, and any number of tasks may use it. Every method
/// makes one round trip, and its effect is atomic.
public struct RemoteRepository: RecordStore {
    /// The client that has created this repository.
    public let client: CRUDClient
    /// The collection's name.
    public let collection: String

    /// The client's ``CRUDClient/Options/timeout``.
    public var timeout: Duration { client.timeout }

    @discardableResult
    public func create<Item: Encodable>(id: String, item: Item) async throws -> Revision {
        try await create(id: id, item: item, expiresIn: nil)
    }

    @discardableResult
    public func create<Item: Encodable>(id: String, item: Item, expiresIn: Duration?) async throws -> Revision {
        try await write(.create) { params in
            params.member("id", id)
            params.member("item", json: try ItemCoding.text(of: item))
            params.timeToLive(expiresIn)
        }
    }

    public func readVersioned<Item: Decodable>(id: String, as type: Item.Type) async throws -> Versioned<Item> {
        try Versioned(await call(.read) { $0.member("id", id) }, .read, in: collection)
    }

    @discardableResult
    public func update<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) async throws -> Revision {
        try await update(id: id, item: item, ifRevision: ifRevision, expiresIn: nil)
    }

    @discardableResult
    public func update<Item: Encodable>(
        id: String, item: Item, ifRevision: Revision?, expiresIn: Duration?
    ) async throws -> Revision {
        try await replace(.update, id, item, ifRevision, expiresIn)
    }

    public func delete(id: String, ifRevision: Revision?) async throws {
        _ = try await call(.delete) { params in
            params.member("id", id)
            if let ifRevision { params.member("ifRevision", ifRevision.text) }
        }
    }

    @discardableResult
    public func upsert<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) async throws -> Revision {
        try await upsert(id: id, item: item, ifRevision: ifRevision, expiresIn: nil)
    }

    @discardableResult
    public func upsert<Item: Encodable>(
        id: String, item: Item, ifRevision: Revision?, expiresIn: Duration?
    ) async throws -> Revision {
        try await replace(.upsert, id, item, ifRevision, expiresIn)
    }

    public func exists(id: String) async throws -> Bool {
        let result = try await call(.exists) { $0.member("id", id) }
        guard let exists = result.bool("exists") else { throw CRUDError.malformed(.exists) }
        return exists
    }

    public func readVersioned<Item: Decodable>(ids: [String], as type: Item.Type) async throws -> [Versioned<Item>] {
        // By bytes: String's own equality takes canonically equivalent ids for one.
        var seen: Set<[UInt8]> = []
        let ids = ids.filter { seen.insert(Array($0.utf8)).inserted }
        return try await readParts(ids[...], DefaultLimits.batch, as: type)
    }

    /// Reads records in requests of at most `count` each, fewer where the daemon allows no more.
    private func readParts<Item: Decodable>(
        _ ids: ArraySlice<String>, _ count: Int, as type: Item.Type
    ) async throws -> [Versioned<Item>] {
        var (rest, count) = (ids, max(1, count))
        var records: [Versioned<Item>] = []
        repeat {
            do {
                records += try await readPart(rest.prefix(count), as: type)
                rest = rest.dropFirst(count)
            } catch let error as CRUDError where error.code == .limitExceeded && min(count, rest.count) > 1 {
                let tried = min(count, rest.count)
                switch error.details.limit {
                case "batch": count = max(1, min(error.details.maximum ?? 1, tried - 1))
                // The request, or the reply to it, is too long.
                case "frame_bytes": count = tried / 2
                default: throw error
                }
            }
        } while !rest.isEmpty
        return records
    }

    private func readPart<Item: Decodable>(
        _ ids: ArraySlice<String>, as type: Item.Type
    ) async throws -> [Versioned<Item>] {
        let result = try await call(.readMany) { $0.member("ids", strings: ids) }
        guard let records = result.elements("records") else { throw CRUDError.malformed(.readMany) }
        return try records.map { try Versioned(ResultObject(Array($0)), .readMany, in: collection) }
    }

    /// - Parameter waiting: how long the daemon may hold back its reply.
    func call(
        _ method: RemoteMethod, waiting: Duration = .zero, _ members: (inout JSONWriter) throws -> Void
    ) async throws -> ResultObject {
        let text = try await client.call(
            method, on: CallSubject(collection: collection), waiting: waiting
        ) { request in
            var failure: (any Error)?
            request.object { params in
                params.member("collection", collection)
                do { try members(&params) } catch { failure = error }
            }
            if let failure { throw failure }
        }
        guard let result = ResultObject(text) else { throw CRUDError.malformed(method) }
        return result
    }

    private func replace(
        _ method: RemoteMethod, _ id: String, _ item: some Encodable, _ ifRevision: Revision?, _ expiresIn: Duration?
    ) async throws -> Revision {
        try await write(method) { params in
            params.member("id", id)
            params.member("item", json: try ItemCoding.text(of: item))
            if let ifRevision { params.member("ifRevision", ifRevision.text) }
            params.timeToLive(expiresIn)
        }
    }

    private func write(
        _ method: RemoteMethod, _ members: (inout JSONWriter) throws -> Void
    ) async throws -> Revision {
        guard let revision = try await call(method, members).string("revision") else {
            throw CRUDError.malformed(method)
        }
        return Revision(revision)
    }
}
