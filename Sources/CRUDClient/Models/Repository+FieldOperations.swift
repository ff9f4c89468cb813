/// Operations on single members, which need no record to be read before.
extension Repository {
    /// Applies operations to single properties of a record, atomically.
    ///
    /// ```swift
    /// try await users.apply(id: "ada") {
    ///     $0.visits += 1
    ///     $0.tags.add("regular")
    /// }
    /// ```
    ///
    /// It is a patch: nothing is read before, and nothing conflicts. Where ``modify(id:_:)`` needs a condition and
    /// retries, this is one request.
    ///
    /// - Parameters:
    ///   - id: the record's id.
    ///   - ifRevision: the record is changed only if this is its revision; nil: in any case.
    ///   - upsert: whether a missing record starts as `{}`. With the operations it must be a `Model`.
    ///   - expiry: nil: as before.
    ///   - operations: adds the operations. If it throws, nothing is sent.
    /// - Returns: the new record.
    /// - Throws: ``CRUDError/Code/recordNotFound``, unless it is an upsert; ``CRUDError/Code/revisionMismatch``;
    ///   ``CRUDError/Code/unsupported`` if what is stored has another type, or the format cannot represent the new
    ///   item, with the path in ``CRUDError/Details/path``; ``CRUDError/Code/invalidParams`` for two different
    ///   operations on one property, or on one and a property within it; a `DecodingError` if the record, which has
    ///   been stored, is not a `Model`.
    @discardableResult
    public nonisolated(nonsending) func apply(
        id: some RecordIDConvertible, ifRevision: Revision? = nil, upsert: Bool = false, expiry: Expiry? = nil,
        _ operations: (inout ModelPatch<Model>) throws -> Void
    ) async throws -> Model where Model: Queryable {
        var patch = ModelPatch<Model>()
        try operations(&patch)
        return try await store.patch(
            id: recordID(id), with: nil, applying: patch.operations, ifRevision: ifRevision, upsert: upsert,
            expiry: expiry, as: Model.self
        ).item
    }

    /// Applies operations to single members of a record, atomically, as
    /// ``apply(id:ifRevision:upsert:expiry:_:)`` does.
    ///
    /// - Parameters:
    ///   - operations: their paths are those of the stored record, which the compiler does not check.
    ///   - id: the record's id.
    ///   - ifRevision: the record is changed only if this is its revision; nil: in any case.
    ///   - upsert: whether a missing record starts as `{}`. With the operations it must be a `Model`.
    ///   - expiry: nil: as before.
    /// - Returns: the new record.
    /// - Throws: as ``apply(id:ifRevision:upsert:expiry:_:)`` does.
    @discardableResult
    public func apply(
        _ operations: FieldOperations, id: some RecordIDConvertible, ifRevision: Revision? = nil,
        upsert: Bool = false, expiry: Expiry? = nil
    ) async throws -> Model {
        try await store.patch(
            id: recordID(id), with: nil, applying: operations, ifRevision: ifRevision, upsert: upsert, expiry: expiry,
            as: Model.self
        ).item
    }
}

extension Transaction {
    /// Applies operations to single properties of a record, as ``Repository/apply(id:ifRevision:upsert:expiry:_:)``
    /// does. If there is none, or it has another revision, the transaction fails: ``CRUDError/Code/recordNotFound``,
    /// ``CRUDError/Code/revisionMismatch``.
    public mutating func apply(
        id: some RecordIDConvertible, ifRevision: Revision? = nil, upsert: Bool = false, expiry: Expiry? = nil,
        _ operations: (inout ModelPatch<Model>) throws -> Void
    ) rethrows where Model: Queryable {
        var patch = ModelPatch<Model>()
        try operations(&patch)
        apply(patch.operations, id: id, ifRevision: ifRevision, upsert: upsert, expiry: expiry)
    }

    /// Applies operations to single members of a record, as ``apply(id:ifRevision:upsert:expiry:_:)`` does.
    public mutating func apply(
        _ operations: FieldOperations, id: some RecordIDConvertible, ifRevision: Revision? = nil,
        upsert: Bool = false, expiry: Expiry? = nil
    ) {
        add(.apply(operations, ifRevision: ifRevision, upsert: upsert), id: id, expiry)
    }
}
