/// Errors of one record, which their messages name.
extension CRUDError {
    package static func recordNotFound(_ id: some Sequence<UInt8>, in collection: some Sequence<UInt8>) -> CRUDError {
        CRUDError(.recordNotFound, "there is no \(record(id, collection))")
    }

    package static func recordExists(_ id: some Sequence<UInt8>, in collection: some Sequence<UInt8>) -> CRUDError {
        CRUDError(.recordExists, "there is already a \(record(id, collection))")
    }

    /// - Parameter current: the record's revision; nil if there is no record.
    package static func revisionMismatch(
        _ id: some Sequence<UInt8>, in collection: some Sequence<UInt8>, current: String?
    ) -> CRUDError {
        let record = record(id, collection)
        return CRUDError(
            .revisionMismatch, current == nil ? "there is no \(record)" : "\(record) has another revision",
            details: Details(revision: current))
    }

    /// This error with the record in front of its message.
    package func about(_ id: some Sequence<UInt8>, in collection: some Sequence<UInt8>) -> CRUDError {
        var error = self
        error.message = "\(Self.record(id, collection)): \(message)"
        return error
    }

    private static func record(_ id: some Sequence<UInt8>, _ collection: some Sequence<UInt8>) -> String {
        "record \(quoted(id)) in collection \(quoted(collection))"
    }
}
