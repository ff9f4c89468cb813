import CRUDJSON
import CRUDModel
import CRUDWire

/// Queries, patches and batches.
extension RemoteRepository {
    public func patch<Item: Decodable>(
        id: String, with patch: EncodedItem, ifRevision: Revision?, upsert: Bool, as type: Item.Type
    ) async throws -> Versioned<Item> {
        try await self.patch(id: id, with: patch, ifRevision: ifRevision, upsert: upsert, expiry: nil, as: type)
    }

    public func patch<Item: Decodable>(
        id: String, with patch: EncodedItem, ifRevision: Revision?, upsert: Bool, expiry: Expiry?, as type: Item.Type
    ) async throws -> Versioned<Item> {
        try await self.patch(
            id: id, with: patch, applying: FieldOperations(), ifRevision: ifRevision, upsert: upsert, expiry: expiry,
            as: type)
    }

    public func patch<Item: Decodable>(
        id: String, with patch: EncodedItem?, applying operations: FieldOperations, ifRevision: Revision?,
        upsert: Bool, expiry: Expiry?, as type: Item.Type
    ) async throws -> Versioned<Item> {
        let texts = try operations.texts()
        let result = try await call(.patch) { params in
            params.member("id", id)
            params.patch(patch, texts)
            if let ifRevision { params.member("ifRevision", ifRevision.text) }
            if upsert { params.member("upsert", true) }
            params.expiry(expiry, ofPatch: true)
        }
        guard let item = result.value("item"), let revision = result.string("revision") else {
            throw CRUDError.malformed(.patch)
        }
        return Versioned(
            id: id, item: try EncodedItem(bytes: Array(item)).decoded(of: id, in: collection),
            revision: Revision(revision))
    }

    @discardableResult
    public func touch(id: String, expiry: Expiry, ifRevision: Revision?) async throws -> Revision {
        let result = try await call(.touch) { params in
            params.member("id", id)
            if let ifRevision { params.member("ifRevision", ifRevision.text) }
            params.expiry(expiry, ofPatch: true)
        }
        guard let revision = result.string("revision") else { throw CRUDError.malformed(.touch) }
        return Revision(revision)
    }

    public func query<Item: Decodable>(_ query: RecordQuery, as type: Item.Type) async throws -> RecordPage<Item> {
        let result = try await call(.query) { params in
            params.selection(query.selection)
            if !query.sort.keys.isEmpty {
                params.key("sort")
                query.sort.write(to: &params)
            }
            if let limit = query.limit { params.member("limit", limit) }
            if let cursor = query.cursor { params.member("cursor", cursor.text) }
            if let fields = query.fields { params.member("fields", strings: fields.map(\.text)) }
            if query.explains { params.member("explain", true) }
        }
        return try RecordPage(result, of: query, in: collection)
    }

    public func count(_ selection: RecordSelection) async throws -> Int {
        let result = try await call(.count) { $0.selection(selection) }
        guard let count = result.integer("count") else { throw CRUDError.malformed(.count) }
        return count
    }

    @discardableResult
    public func deleteMatching(_ selection: RecordSelection) async throws -> Int {
        let result = try await call(.deleteMatching) { params in
            if selection == .all { params.member("all", true) } else { params.selection(selection) }
        }
        guard let deleted = result.integer("deleted") else { throw CRUDError.malformed(.deleteMatching) }
        return deleted
    }

    @discardableResult
    public func batch(_ operations: [RecordOperation]) async throws -> [Result<RecordOutcome, CRUDError>] {
        try await batch(operations, isAtomic: false).map { entry in
            if let error = entry.value("error").map(Array.init) {
                guard let error = CRUDError(errorObject: error) else { throw CRUDError.malformed(.batch) }
                return .failure(error)
            }
            return .success(try Self.outcome(entry))
        }
    }

    @discardableResult
    public func transaction(_ operations: [RecordOperation]) async throws -> [RecordOutcome] {
        try await batch(operations, isAtomic: true).map(Self.outcome)
    }

    /// The entries of `results`.
    private func batch(_ operations: [RecordOperation], isAtomic: Bool) async throws -> [ResultObject] {
        let texts = try operations.enumerated().map { index, operation in
            do throws(CRUDError) { return try operation.action.texts } catch { throw error.at(index) }
        }
        let isOfOne = operations.allSatisfy { $0.collection == nil || $0.collection == collection }
        let subject = CallSubject(collection: isOfOne ? collection : nil, operationCount: operations.count)
        let text = try await client.call(.batch, on: subject) { request in
            request.object { params in
                params.key("operations")
                params.array { list in
                    for (operation, texts) in zip(operations, texts) {
                        list.operation(operation, texts, in: operation.collection ?? collection)
                    }
                }
                if isAtomic { params.member("atomic", true) }
            }
        }
        guard let results = ResultObject(text)?.elements("results"), results.count == operations.count else {
            throw CRUDError.malformed(.batch)
        }
        return try results.map { text in
            guard let entry = ResultObject(Array(text)) else { throw CRUDError.malformed(.batch) }
            return entry
        }
    }

    private static func outcome(_ entry: ResultObject) throws -> RecordOutcome {
        guard let result = entry.object("result") else { throw CRUDError.malformed(.batch) }
        return RecordOutcome(
            revision: result.string("revision").map(Revision.init),
            item: result.value("item").map { EncodedItem(bytes: Array($0)) })
    }
}

extension RecordPage where Item: Decodable {
    /// The page that is the result of a `record.query`.
    init(_ result: ResultObject, of query: RecordQuery, in collection: String) throws {
        guard let records = result.elements("records") else { throw CRUDError.malformed(.query) }
        let bareItem = EncodedItem.bare(query.fields)
        self.init(
            records: try records.map {
                try Versioned(ResultObject(Array($0)), .query, in: collection, bareItem: bareItem)
            },
            next: result.string("cursor").map(Cursor.init),
            plan: try result.value("plan").map { try ItemCoding.item(from: $0) },
            corrupt: result.strings("corrupt") ?? [])
    }

    /// The page that is the JSON text of the result of a `record.query`.
    package init(json text: [UInt8], of query: RecordQuery, in collection: String) throws {
        guard let result = ResultObject(text) else { throw CRUDError.malformed(.query) }
        try self.init(result, of: query, in: collection)
    }
}

extension Versioned where Item: Decodable {
    /// The record that is the result of a method, or an element of it.
    ///
    /// - Parameter bareItem: the item of a record without one; nil: every record has one.
    init(
        _ object: ResultObject?, _ method: RemoteMethod, in collection: String, bareItem: EncodedItem? = nil
    ) throws {
        guard let id = object?.string("id"), let item = object?.value("item") ?? bareItem?.bytes[...],
            let revision = object?.string("revision")
        else { throw CRUDError.malformed(method) }
        self.init(
            id: id, item: try EncodedItem(bytes: Array(item)).decoded(of: id, in: collection),
            revision: Revision(revision), expiresAt: object?.integer("expiresAt"))
    }
}

extension JSONWriter {
    /// A member whose value is JSON text already.
    mutating func member(_ key: String, json: some Sequence<UInt8>) {
        self.key(key)
        raw(json)
    }

    mutating func selection(_ selection: RecordSelection) {
        if let filter = selection.filter {
            key("filter")
            filter.write(to: &self)
        }
        if let prefix = selection.prefix { member("prefix", prefix) }
    }

    /// The `ttl` of a write; none where it is nil.
    mutating func timeToLive(_ duration: Duration?) {
        guard let duration else { return }
        key("ttl")
        raw(duration.secondsText.utf8)
    }

    fileprivate mutating func expiry(_ expiry: Expiry?, ofPatch isPatch: Bool) {
        switch expiry {
        case .never where isPatch:
            key("ttl")
            null()
        case .never, nil: break
        case .after(let duration): timeToLive(duration)
        case .at(let instant): member("expiresAt", Expiry.milliseconds(instant))
        }
    }

    /// A merge patch and field operations. Without both, what changes nothing.
    fileprivate mutating func patch(_ patch: EncodedItem?, _ operations: FieldOperationTexts) {
        if let patch { member("patch", json: patch.bytes) }
        for part in operations.parts {
            member(part.operation.name.description, json: operations.text[part.object.range])
        }
        if patch == nil, operations.isEmpty { member("increment", json: "{}".utf8) }
    }

    fileprivate mutating func operation(
        _ operation: RecordOperation, _ texts: FieldOperationTexts, in collection: String
    ) {
        object { params in
            params.member("op", operation.action.name)
            params.member("collection", collection)
            params.member("id", operation.id)
            switch operation.action {
            case .create, .update, .upsert: params.expiry(operation.expiry, ofPatch: false)
            case .patch, .apply: params.expiry(operation.expiry, ofPatch: true)
            case .touch: params.expiry(operation.expiry ?? .never, ofPatch: true)
            case .delete, .check: break
            }
            switch operation.action {
            case .create(let item):
                params.member("item", json: item.bytes)
            case .update(let item, let revision), .upsert(let item, let revision):
                params.member("item", json: item.bytes)
                if let revision { params.member("ifRevision", revision.text) }
            case .patch(let patch, let revision, let upsert):
                params.member("patch", json: patch.bytes)
                if let revision { params.member("ifRevision", revision.text) }
                if upsert { params.member("upsert", true) }
            case .apply(_, let patch, let revision, let upsert):
                params.patch(patch, texts)
                if let revision { params.member("ifRevision", revision.text) }
                if upsert { params.member("upsert", true) }
            case .delete(let revision), .touch(let revision):
                if let revision { params.member("ifRevision", revision.text) }
            case .check(let revision):
                params.key("ifRevision")
                if let revision { params.string(revision.text) } else { params.null() }
            }
        }
    }
}

extension RecordOperation.Action {
    /// The text of its field operations; empty if it has none.
    fileprivate var texts: FieldOperationTexts {
        get throws(CRUDError) {
            if case .apply(let operations, _, _, _) = self { try operations.texts() } else { FieldOperationTexts() }
        }
    }

    /// Its name in the protocol.
    fileprivate var name: String {
        switch self {
        case .create: "create"
        case .update: "update"
        case .upsert: "upsert"
        case .patch, .apply: "patch"
        case .touch: "touch"
        case .delete: "delete"
        case .check: "check"
        }
    }
}
