import CRUDJSON
import CRUDModel

extension MemberList {
    /// An error of these members, `params` or an operation of `record.batch`, whose message names the collection, and
    /// the record if there is one. A member that is itself the error names nothing.
    func naming(_ error: CRUDError, _ text: Span<UInt8>) -> CRUDError {
        func name(_ parameter: Parameter) -> [UInt8]? {
            guard error.details.member != parameter.name.description, let value = value(of: parameter.name, text),
                value.kind == .string
            else { return nil }
            return value.decodedString(text)
        }
        guard let collection = name(.collection) else { return error }
        guard let id = name(.id) else { return error.about(collection: collection) }
        return error.about(id, in: collection)
    }
}
