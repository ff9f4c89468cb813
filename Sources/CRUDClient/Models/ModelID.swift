import CRUDModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The text of a record's id, as the model's own id would have it.
enum ModelID {
    /// The text of `id`; of one that has another type than the model's, that of the equal value of the model's type.
    ///
    /// So a `UUID` and its `uuidString` are one id, and "abc" is none of a model with numbers as ids. A ``Persistable``
    /// model has ids of any text.
    ///
    /// - Throws: `invalid_params` for a value that cannot be an id of the model.
    static func text<Model>(_ id: some RecordIDConvertible, of model: Model.Type) throws(CRUDError) -> String {
        guard !(Model.self is any Persistable.Type), let model = Model.self as? any Identifiable.Type else {
            return id.recordID
        }
        return try text(id, ofIdentifiable: model)
    }

    private static func text<Model: Identifiable>(
        _ id: some RecordIDConvertible, ofIdentifiable model: Model.Type
    ) throws(CRUDError) -> String {
        let text = id.recordID
        if type(of: id) == Model.ID.self { return text }
        switch Model.ID.self {
        case is UUID.Type:
            guard let id = UUID(uuidString: text) else { throw mismatch(text, model) }
            return id.recordID
        case let type as any FixedWidthInteger.Type:
            guard let text = canonical(text, type) else { throw mismatch(text, model) }
            return text
        case let type as any LosslessStringConvertible.Type:
            // What it does not read may be the id's text nevertheless, which need not be its description.
            return canonical(text, type) ?? text
        default:
            return text
        }
    }

    private static func canonical<ID: LosslessStringConvertible>(_ text: String, _ type: ID.Type) -> String? {
        guard let id = ID(text) else { return nil }
        return (id as? any RecordIDConvertible)?.recordID ?? id.description
    }

    private static func mismatch<Model: Identifiable>(_ text: String, _ model: Model.Type) -> CRUDError {
        .invalid("id", "of a \(model) is of type \(Model.ID.self), which \(quoted(text.utf8)) is not")
    }

    /// Checks that a change of a model has left its id alone.
    ///
    /// - Throws: `invalid_params` if it has not.
    static func expectSame<Model>(_ before: Model, _ after: Model) throws {
        guard let before = before as? any Identifiable, let after = after as? any Identifiable else { return }
        // Of a type that has no text: nothing can be compared.
        guard let old = try? ModelCoding.recordID(of: before), let new = try? ModelCoding.recordID(of: after) else {
            return
        }
        guard !old.utf8.elementsEqual(new.utf8) else { return }
        throw CRUDError.invalid(
            "id",
            "must stay: the change makes \(quoted(old.utf8)) \(quoted(new.utf8)); create the one, and delete the other")
    }
}

extension Repository {
    /// The text of a record's id.
    func recordID(_ id: some RecordIDConvertible) throws(CRUDError) -> String {
        try ModelID.text(id, of: Model.self)
    }
}
