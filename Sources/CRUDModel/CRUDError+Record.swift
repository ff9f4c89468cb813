/// Errors whose messages name the collection, and the record if there is one.
extension CRUDError {
    package static func recordNotFound(_ id: some Sequence<UInt8>, in collection: some Sequence<UInt8>) -> CRUDError {
        CRUDError(.recordNotFound, "there is no \(record(id, collection))").namingSubject
    }

    package static func recordExists(_ id: some Sequence<UInt8>, in collection: some Sequence<UInt8>) -> CRUDError {
        CRUDError(.recordExists, "there is already a \(record(id, collection))").namingSubject
    }

    /// - Parameter current: the record's revision; nil if there is no record.
    package static func revisionMismatch(
        _ id: some Sequence<UInt8>, in collection: some Sequence<UInt8>, current: String?
    ) -> CRUDError {
        let record = record(id, collection)
        return CRUDError(
            .revisionMismatch, current == nil ? "there is no \(record)" : "\(record) has another revision",
            details: Details(revision: current)
        ).namingSubject
    }

    /// This error with the record in front of its message, unless that names it.
    package func about(_ id: some Sequence<UInt8>, in collection: some Sequence<UInt8>) -> CRUDError {
        naming(Self.record(id, collection))
    }

    /// This error with the collection in front of its message, unless that names it.
    package func about(collection: some Sequence<UInt8>) -> CRUDError {
        naming("collection \(quoted(collection))")
    }

    private func naming(_ subject: String) -> CRUDError {
        guard !namesSubject else { return self }
        var error = self
        error.message = "\(subject): \(message)"
        return error.namingSubject
    }

    private var namingSubject: CRUDError {
        var error = self
        error.namesSubject = true
        return error
    }

    private static func record(_ id: some Sequence<UInt8>, _ collection: some Sequence<UInt8>) -> String {
        "record \(quoted(id)) in collection \(quoted(collection))"
    }
}
