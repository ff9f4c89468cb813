import CRUDModel

/// A record whose item is not of the type that was expected: another program has stored it, or another version of this
/// one.
public struct UndecodableRecord: Sendable, CustomStringConvertible {
    /// The record's collection.
    public var collection: String
    /// The record's id.
    public var id: String
    /// The revision that was read.
    public var revision: Revision
    /// Why it could not be decoded: a `DecodingError`, or what the type's own decoding has thrown.
    public var error: any Error

    /// - Parameters:
    ///   - collection: the record's collection.
    ///   - id: the record's id.
    ///   - revision: the revision that was read.
    ///   - error: why it could not be decoded.
    public init(collection: String, id: String, revision: Revision, error: any Error) {
        self.collection = collection
        self.id = id
        self.revision = revision
        self.error = error
    }

    public var description: String {
        "record \(quoted(id.utf8)) of collection \(quoted(collection.utf8)) cannot be decoded: \(error)"
    }
}

extension Repository {
    /// This repository, except that whatever reads many records leaves out those that are not a `Model`, and calls
    /// `report` for each.
    ///
    /// ```swift
    /// let lenient = users.reportingUndecodable { logger.warning("\($0)") }
    /// for try await change in lenient.changes(after: cursor) { apply(change) }
    /// ```
    ///
    /// Without it one such record ends a fetch, an iteration or a feed with an error, and a feed that begins again
    /// meets it again.
    ///
    /// - Parameter report: is called during the call or the iteration that has read the record.
    public func reportingUndecodable(
        _ report: @escaping @Sendable (UndecodableRecord) -> Void
    ) -> Repository<Model> {
        var copy = self
        copy.report = report
        return copy
    }
}

/// An item, or why it is none.
struct DecodedItem<Item: Decodable>: Decodable {
    let result: Result<Item, any Error>

    init(from decoder: any Decoder) throws {
        // Through a container, so that the decoder's strategies for dates and the like apply to a top-level value too.
        result = Result { try decoder.singleValueContainer().decode(Item.self) }
    }
}

extension DecodedItem: Sendable where Item: Sendable {}

extension Versioned {
    /// The record with its item; nil if that could not be decoded and was reported.
    ///
    /// - Throws: why it could not, where nothing takes reports.
    func decoded<Value>(
        in collection: String, _ report: (@Sendable (UndecodableRecord) -> Void)?
    ) throws -> Versioned<Value>? where Item == DecodedItem<Value> {
        do {
            return try map { try $0.result.get() }
        } catch {
            try Undecodable.report(error, id, revision, in: collection, to: report)
            return nil
        }
    }
}

enum Undecodable {
    /// Reports a record, or throws its error, which names it.
    static func report(
        _ error: any Error, _ id: String, _ revision: Revision, in collection: String,
        to report: (@Sendable (UndecodableRecord) -> Void)?
    ) throws {
        guard let report else { throw named(error, id, in: collection) }
        report(UndecodableRecord(collection: collection, id: id, revision: revision, error: error))
    }

    /// The same error, whose description names the record if it is a `DecodingError`.
    static func named(_ error: any Error, _ id: String, in collection: String) -> any Error {
        guard let error = error as? DecodingError else { return error }
        func named(_ context: DecodingError.Context) -> DecodingError.Context {
            let subject = "record \(quoted(id.utf8)) of collection \(quoted(collection.utf8))"
            return DecodingError.Context(
                codingPath: context.codingPath, debugDescription: "\(subject): \(context.debugDescription)",
                underlyingError: context.underlyingError)
        }
        return switch error {
        case .typeMismatch(let type, let context): DecodingError.typeMismatch(type, named(context))
        case .valueNotFound(let type, let context): DecodingError.valueNotFound(type, named(context))
        case .keyNotFound(let key, let context): DecodingError.keyNotFound(key, named(context))
        case .dataCorrupted(let context): DecodingError.dataCorrupted(named(context))
        @unknown default: error
        }
    }
}

extension EncodedItem {
    /// The decoded value of a record; an error names that.
    package func decoded<Value: Decodable>(of id: String, in collection: String) throws -> Value {
        do { return try decoded() } catch { throw Undecodable.named(error, id, in: collection) }
    }
}
