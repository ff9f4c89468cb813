import CRUDModel

/// What is known of a model by its type: under which id it is stored, and as what.
enum ModelCoding {
    /// The id of the record that keeps `model`: by its primary key where it is ``Persistable``, else by its `id`.
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

    /// What is stored of `model`: its stored shape where it is ``Persistable``, else itself.
    static func storedValue(of model: some Encodable) throws -> StoredValue {
        if let model = model as? any Persistable { return StoredValue(value: try model.stored) }
        return StoredValue(value: model)
    }
}

/// A value of any type, coded as it codes itself.
struct StoredValue: Encodable {
    let value: any Encodable

    func encode(to encoder: any Encoder) throws {
        // By way of a container, so that the encoder's own ways with dates and the like hold for a value at the top too.
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}
