import CRUDModel

/// How a model is stored: its id, and its stored shape.
enum ModelCoding {
    /// The id of a model's record: from its primary key if it is ``Persistable``, else its `id`.
    ///
    /// - Throws: ``CRUDError/Code/invalidParams`` for an `id` of a type that has no text.
    static func recordID(of model: some Identifiable) throws -> String {
        if let model = model as? any Persistable { return model.recordID }
        switch model.id {
        case let id as any RecordIDConvertible: return id.recordID
        case let id as any LosslessStringConvertible: return id.description
        default:
            throw CRUDError(
                .invalidParams,
                "the id of \(type(of: model)) is neither RecordIDConvertible nor LosslessStringConvertible",
                details: CRUDError.Details(member: "id"))
        }
    }

    /// The stored shape of a model if it is ``Persistable``, else the model itself.
    static func storedValue(of model: some Encodable) throws -> StoredValue {
        if let model = model as? any Persistable { return StoredValue(value: try model.stored) }
        return StoredValue(value: model)
    }
}

/// A value of any type, with its own encoding.
struct StoredValue: Encodable {
    let value: any Encodable

    func encode(to encoder: any Encoder) throws {
        // Through a container, so that the encoder's strategies for dates and the like apply to a top-level value too.
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}
