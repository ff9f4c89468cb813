import CRUDJSON
import CRUDModel

/// Operations on single members of an item, which a patch applies to the record as it is at that time: nothing is read
/// before, and nothing conflicts.
///
/// ```swift
/// var operations = FieldOperations()
/// operations.increment("visits", by: 1)
/// operations.add(["regular"], to: "tags")
/// let user = try await users.patch(id: "ada", applying: operations, as: User.self)
/// ```
///
/// A path is the names of members, outermost first, joined by dots: `address.city`; a dot in a name is written `\.` and
/// a backslash `\\`. A member that is missing or null counts as 0, or as an empty list; objects on the way to it are
/// made. The patch fails with ``CRUDError/Code/unsupported`` and the member's path in
/// ``CRUDError/Details/path`` if the member has another type, with ``CRUDError/Code/invalidParams`` if a path occurs
/// twice or lies within another; only several `append` of one path, several `add` and several `remove` are one
/// operation.
///
/// Numbers are exact decimals, also those of `Double`: as they are encoded. With a value that cannot be encoded the
/// call throws ``CRUDError/Code/invalidParams``, with the `EncodingError` as its ``CRUDError/cause``, and nothing is
/// sent.
///
/// An increment that was sent twice is applied twice. The client does not send it again where its outcome is unknown,
/// and neither must the application.
public struct FieldOperations: Sendable {
    private struct Field: Hashable {
        var operation: FieldOperation
        var path: PropertyPath
    }

    /// In the order in which they were added, with the JSON text of their operands.
    private var fields: [(field: Field, operands: [[UInt8]])] = []
    private var indexes: [Field: Int] = [:]
    /// Why a path or an operand cannot be sent.
    private var failure: CRUDError?

    public init() {}

    /// Whether there is none.
    public var isEmpty: Bool { fields.isEmpty && failure == nil }

    // MARK: Numbers

    /// Adds a number to the member.
    public mutating func increment(_ path: String, by amount: some Numeric & Encodable) {
        append(.increment, path) { try FieldOperand.number(amount) }
    }

    /// Subtracts a number from the member.
    public mutating func decrement(_ path: String, by amount: some Numeric & Encodable) {
        append(.increment, path) { try FieldOperand.negated(amount) }
    }

    /// Makes the member the lesser of itself and a number; that number if there is none.
    public mutating func minimum(_ path: String, _ number: some Numeric & Encodable) {
        append(.minimum, path) { try FieldOperand.number(number) }
    }

    /// Makes the member the greater of itself and a number; that number if there is none.
    public mutating func maximum(_ path: String, _ number: some Numeric & Encodable) {
        append(.maximum, path) { try FieldOperand.number(number) }
    }

    // MARK: Lists

    /// Appends values to the list.
    public mutating func append(_ values: some Sequence<some Encodable>, to path: String) {
        append(.append, path) { try FieldOperand.list(values) }
    }

    /// Appends those values to the list that equal none of its elements, each once. Text is equal by code point,
    /// numbers are by value, objects by their members in any order.
    public mutating func add(_ values: some Sequence<some Encodable>, to path: String) {
        append(.add, path) { try FieldOperand.list(values) }
    }

    /// Removes all elements from the list that equal one of the values.
    public mutating func remove(_ values: some Sequence<some Encodable>, from path: String) {
        append(.remove, path) { try FieldOperand.list(values) }
    }

    // MARK: Composing

    /// Adds the operations of another value.
    public mutating func append(_ other: FieldOperations) {
        for (field, operands) in other.fields { append(field.operation, field.path) { operands } }
        failure = failure ?? other.failure
    }

    private mutating func append(
        _ operation: FieldOperation, _ path: String, _ operands: () throws -> [[UInt8]]
    ) {
        guard let path = PropertyPath(text: path) else {
            let reason = "has a path in which a backslash precedes neither a dot nor a backslash"
            failure = failure ?? CRUDError.invalid(operation.name.description, reason)
            return
        }
        append(operation, path, operands)
    }

    /// - Parameter operands: returns their JSON text.
    mutating func append(
        _ operation: FieldOperation, _ path: PropertyPath, _ operands: () throws -> [[UInt8]]
    ) {
        do {
            let operands = try operands()
            let field = Field(operation: operation, path: path)
            if !operation.takesNumber, let index = indexes[field] {
                fields[index].operands += operands
            } else {
                indexes[field] = fields.count
                fields.append((field, operands))
            }
        } catch {
            let name = operation.name
            failure =
                failure ?? error as? CRUDError
                ?? CRUDError(
                    .invalidParams, "`\(name)` has a value that cannot be encoded",
                    details: CRUDError.Details(member: name.description), cause: error)
        }
    }

    // MARK: Text

    /// The operations as members of `params`.
    ///
    /// - Throws: `invalid_params` for a path or an operand that cannot be sent.
    package func texts() throws(CRUDError) -> FieldOperationTexts {
        if let failure { throw failure }
        var texts = FieldOperationTexts()
        for operation in FieldOperation.allCases {
            var writer = JSONWriter()
            let fields = fields.filter { $0.field.operation == operation }
            guard !fields.isEmpty else { continue }
            writer.object { object in
                for (field, operands) in fields {
                    object.key(field.path.text)
                    if operation.takesNumber {
                        object.raw(operands.joined())
                    } else {
                        object.array { list in for operand in operands { list.raw(operand) } }
                    }
                }
            }
            let object = JSONSlice(start: 0, end: writer.bytes.count, kind: .object)
            texts.append(operation, object, of: writer.bytes.span)
        }
        return texts
    }
}

/// The JSON text of the operands of field operations.
enum FieldOperand {
    /// - Throws: ``CRUDError/Code/invalidParams`` if the number is not encoded as one.
    static func number(_ number: some Encodable) throws -> [[UInt8]] {
        let text = try ItemCoding.text(of: number)
        guard JSONNumber(text: String(decoding: text, as: UTF8.self)) != nil else {
            throw CRUDError(.invalidParams, "a value of \(type(of: number)) is not encoded as a number")
        }
        return [text]
    }

    static func negated(_ number: some Encodable) throws -> [[UInt8]] {
        let minus = UInt8(ascii: "-")
        return try Self.number(number).map { $0.first == minus ? Array($0.dropFirst()) : [minus] + $0 }
    }

    static func list(_ values: some Sequence<some Encodable>) throws -> [[UInt8]] {
        try values.map { try ItemCoding.text(of: $0) }
    }
}
