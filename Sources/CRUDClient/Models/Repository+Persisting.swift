import CRUDJSON
import CRUDModel

/// Inserting or updating from any model.
extension Repository {
    /// Stores the members of a model: in a new record if there is none, else in the existing one.
    ///
    /// Any model is accepted, not only `Model`. Members that it does not have are kept, and so are those that are a
    /// plain nil; objects and dictionaries are merged, lists are replaced; a ``Field`` that is null removes its member.
    ///
    /// It is atomic: concurrent changes of other members are kept. It is one request if what is stored of the model
    /// makes a `Model` by itself. Else, a form with two of ten members for example, the record is read first and
    /// decoded with the new members, so that nothing is stored that is not a `Model`; a concurrent change makes it
    /// retry.
    ///
    /// - Returns: the whole new record.
    /// - Throws: ``CRUDError/Code/invalidParams`` if the model's `id` is neither ``RecordIDConvertible`` nor
    ///   `LosslessStringConvertible`; a `DecodingError` if the record would not be a `Model` afterwards. Nothing is
    ///   stored then, unless the model makes a `Model` by itself and the existing record was none before.
    @discardableResult
    public func persist(_ model: some Encodable & Identifiable) async throws -> Model {
        try await persist(model, expiry: nil)
    }

    /// Stores the members of a model as ``persist(_:)->Model`` does, which keeps the record's expiry, and determines
    /// when the record expires.
    ///
    /// - Parameters:
    ///   - model: the model, which determines the record's id.
    ///   - expiresIn: how long the record lives from now on; nil: it does not expire any more.
    @discardableResult
    public func persist(_ model: some Encodable & Identifiable, expiresIn: Duration?) async throws -> Model {
        try await persist(model, expiry: Expiry(expiresIn: expiresIn))
    }

    private func persist(_ model: some Encodable & Identifiable, expiry: Expiry?) async throws -> Model {
        let patch = try EncodedItem(ModelCoding.storedValue(of: model))
        let id = try ModelCoding.recordID(of: model)
        guard Self.isWhole(patch) else { return try await persist(part: patch, id, expiry) }
        return try await store.patch(
            id: id, with: patch, ifRevision: nil, upsert: true, expiry: expiry, as: Model.self
        ).item
    }

    /// Stores the members of several models, as ``persist(_:)->Model`` does.
    ///
    /// Each is atomic by itself; those of one record are stored in their order. If one fails, the others are stored
    /// nevertheless, unless the task is cancelled or a deadline passes. ``transaction(_:)`` is atomic as a whole.
    /// Nothing is stored if a model cannot be encoded, or if its `id` cannot be converted to a record's id.
    ///
    /// - Returns: the whole record after each model.
    /// - Throws: the first error, with the model's index in ``CRUDError/Details/index``; if a whole request failed,
    ///   that of its first model. A `DecodingError` if a record would not be a `Model`; see ``persist(_:)->Model``.
    @discardableResult
    public func persist(_ models: [some Encodable & Identifiable]) async throws -> [Model] {
        let patches = try models.map { model in
            (item: try EncodedItem(ModelCoding.storedValue(of: model)), id: try ModelCoding.recordID(of: model))
        }
        guard patches.allSatisfy({ Self.isWhole($0.item) }) else { return try await persist(parts: patches) }
        let operations = patches.map { RecordOperation(.patch($0.item, upsert: true), id: $0.id) }
        var series = PatchSeries(operations, in: store)
        return try await zip(patches, series.execute()).map { try $1.decoded(of: $0.id, in: store.collection) }
    }

    // MARK: Parts of a record

    /// Whether a patch makes a `Model` of a record that is not there.
    private static func isWhole(_ patch: EncodedItem) -> Bool {
        (try? (merged(patch, with: nil).decoded() as Model)) != nil
    }

    /// What a patch makes of an item; nil: of a record that is not there.
    private static func merged(_ patch: EncodedItem, with item: [UInt8]?) throws -> EncodedItem {
        let item = item ?? Array("{}".utf8)
        return EncodedItem(bytes: try MergePatch.apply(patch.bytes.span, to: item.span))
    }

    /// Stores members that are not a `Model` by themselves, if they are one together with those that are stored.
    private func persist(part patch: EncodedItem, _ id: String, _ expiry: Expiry?) async throws -> Model {
        try await CRUDClient.withDeadline(in: store.timeout) {
            var pauses = ConflictPauses()
            while true {
                let current = try await current(id)
                let merged = try Self.merged(patch, with: current?.item.bytes)
                let _: Model = try merged.decoded(of: id, in: store.collection)
                do {
                    return try await store(patch, making: merged, of: current, id, expiry)
                } catch let error as CRUDError
                    where [.revisionMismatch, .recordNotFound, .recordExists].contains(error.code)
                {
                    try await pauses.wait("the record")
                }
            }
        }
    }

    /// The record's text; nil if there is no record.
    private func current(_ id: String) async throws -> Versioned<ItemText>? {
        do {
            return try await store.readVersioned(id: id, as: ItemText.self)
        } catch let error as CRUDError where error.code == .recordNotFound {
            return nil
        }
    }

    /// Stores members, if the record still is what it was.
    private func store(
        _ patch: EncodedItem, making merged: EncodedItem, of current: Versioned<ItemText>?, _ id: String,
        _ expiry: Expiry?
    ) async throws -> Model {
        if let current {
            return try await store.patch(
                id: id, with: patch, ifRevision: current.revision, upsert: false, expiry: expiry, as: Model.self
            ).item
        }
        let results = try await store.batch([RecordOperation(.create(merged), id: id, expiry: expiry)])
        _ = try results.first?.get()
        return try merged.decoded(of: id, in: store.collection)
    }

    /// How many records are read and written at the same time.
    private static var width: Int { 32 }

    /// Stores members of several records, those of one record one after another.
    private func persist(parts patches: [(item: EncodedItem, id: String)]) async throws -> [Model] {
        var positions: [[UInt8]: [Int]] = [:]
        var ids: [[UInt8]] = []
        // By bytes: String's own equality takes canonically equivalent ids for one.
        for (position, patch) in patches.enumerated() {
            let id = Array(patch.id.utf8)
            if positions[id] == nil { ids.append(id) }
            positions[id, default: []].append(position)
        }
        var results: [Result<Model, any Error>?] = Array(repeating: nil, count: patches.count)
        await withTaskGroup(of: [(Int, Result<Model, any Error>)].self) { group in
            var next = ids.makeIterator()
            var isOver = false
            func addNext() {
                guard !isOver, let id = next.next() else { return }
                let series = positions[id, default: []].map { (position: $0, patch: patches[$0]) }
                group.addTask { await persist(series: series) }
            }
            for _ in 0..<Self.width { addNext() }
            while let finished = await group.next() {
                for (position, result) in finished {
                    results[position] = result
                    if case .failure(let error) = result { isOver = isOver || Self.isOver(error) }
                }
                addNext()
            }
        }
        let failure = results.enumerated().lazy.compactMap { position, result -> (any Error)? in
            guard case .failure(let error)? = result else { return nil }
            return (error as? CRUDError)?.at(position) ?? error
        }.first
        if let failure { throw failure }
        return try results.compactMap { try $0?.get() }
    }

    private func persist(
        series: [(position: Int, patch: (item: EncodedItem, id: String))]
    ) async -> [(Int, Result<Model, any Error>)] {
        var results: [(Int, Result<Model, any Error>)] = []
        for (position, patch) in series {
            do {
                results.append((position, .success(try await persist(part: patch.item, patch.id, nil))))
            } catch {
                results.append((position, .failure(error)))
                if Self.isOver(error) { break }
            }
        }
        return results
    }

    /// Whether other calls of the task would fail as well.
    private static func isOver(_ error: any Error) -> Bool {
        error is CancellationError || (error as? CRUDError)?.cause is DeadlineExceeded
    }
}
