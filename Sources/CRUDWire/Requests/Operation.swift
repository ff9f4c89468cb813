package import CRUDJSON
package import CRUDModel

/// One operation of `record.batch`, as ranges of the request's text.
package struct Operation {
    /// The values of `op`.
    package enum Kind: CaseIterable, Sendable {
        case create, update, upsert, delete, patch, touch, check

        var name: StaticString {
            switch self {
            case .create: "create"
            case .update: "update"
            case .upsert: "upsert"
            case .delete: "delete"
            case .patch: "patch"
            case .touch: "touch"
            case .check: "check"
            }
        }

        /// The method that does the same; nil for a check.
        private var method: Method? {
            switch self {
            case .create: .recordCreate
            case .update: .recordUpdate
            case .upsert: .recordUpsert
            case .delete: .recordDelete
            case .patch: .recordPatch
            case .touch: .recordTouch
            case .check: nil
            }
        }

        /// The operation that does the same as a method; nil if there is none.
        package init?(_ method: Method) {
            guard let kind = Self.allCases.first(where: { $0.method == method }) else { return nil }
            self = kind
        }

        /// The permissions that the operation requires.
        package var access: MethodAccess { method?.definition.access ?? .read }

        /// The parameters that it may have, and those that it must have.
        fileprivate var parameters: MethodTraits {
            method?.definition.traits ?? Self.parametersOfCheck
        }

        private static let parametersOfCheck: MethodTraits = {
            let mask = Parameter.collection.mask | Parameter.id.mask | Parameter.ifRevision.mask
            return MethodTraits(
                method: .recordBatch, name: "check", access: .read, required: mask, alternatives: 0, allowed: mask)
        }()

        /// Whether a parameter may be null.
        fileprivate func takesNull(_ parameter: Parameter) -> Bool {
            parameter == .ifRevision ? self == .check : parameter == .ttl && method?.takesNullTTL == true
        }

        /// Its JSON Schema, as text.
        var schema: String {
            let members = Parameter.allCases.filter { $0.mask & parameters.allowed != 0 }.map { parameter in
                let schema = parameter.schema(in: method ?? .recordBatch)
                let isNullable = parameter == .ifRevision && takesNull(parameter)
                return (parameter, isNullable ? #"{"oneOf":[{"type":"null"},\#(schema)]}"# : schema)
            }
            let properties = members.map { #""\#($0.name)":\#($1)"# }.joined(separator: ",")
            let names = members.filter { $0.0.mask & parameters.required != 0 }.map { #","\#($0.0.name)""# }.joined()
            return #"{"type":"object","properties":{"op":{"const":"\#(name)"},\#(properties)},"#
                + #""required":["op"\#(names)]}"#
        }
    }

    package let kind: Kind
    package let collection: JSONSlice
    package let id: JSONSlice
    /// The item, or the patch.
    package let value: JSONSlice?
    /// The field operations of a patch.
    package let fieldOperations: [FieldOperationTexts.Part]
    /// The revision that the record must have; null, in a check: there must be no record.
    package let ifRevision: JSONSlice?
    /// Of a patch: whether a missing record starts as `{}`.
    package let upserts: Bool
    /// When the record expires; nil: nothing is said of that.
    package let expiry: Expiry?

    package enum Expiry: Sendable {
        case never
        /// In milliseconds from now on.
        case after(Int64)
        /// In milliseconds since 1970-01-01 UTC.
        case at(Int64)

        /// - Parameters:
        ///   - ttl: the parameter `ttl`, which has been checked.
        ///   - instant: the parameter `expiresAt`, which has been checked.
        /// - Throws: `invalid_params` if both are given.
        fileprivate static func of(
            _ ttl: JSONSlice?, _ instant: JSONSlice?, _ text: Span<UInt8>
        ) throws(CRUDError) -> Expiry? {
            if let instant {
                guard ttl == nil else { throw Parameter.expiresAt.invalid("does not go with `ttl`") }
                return instant.integer(text).map { .at(Int64($0)) }
            }
            guard let ttl else { return nil }
            let time = try? Parameter.ttl.milliseconds(ttl, text, atMost: DefaultLimits.ttlSeconds, isPositive: true)
            return time.map { .after($0) } ?? .never
        }
    }

    /// How many bytes of text say what is stored.
    package var contentBytes: Int { fieldOperations.reduce(value?.count ?? 0) { $0 + $1.object.count } }
    /// Whether it makes its item from the current one.
    package var transforms: Bool { kind == .patch || kind == .touch }

    /// The operation that a request asks for; nil if it asks for something else.
    ///
    /// - Parameter maximumDepth: how many names the path of a field operation may have.
    /// - Throws: `invalid_params` and `limit_exceeded`.
    package init?(
        _ request: borrowing Request, of text: Span<UInt8>, maximumDepth: Int
    ) throws(CRUDError) {
        guard let kind = Kind(request.method), let collection = request[.collection], let id = request[.id] else {
            return nil
        }
        self.kind = kind
        self.collection = collection
        self.id = id
        value = request[.item] ?? request[.patch]
        var fieldOperations: [FieldOperationTexts.Part] = []
        for (parameter, operation) in Parameter.fieldOperations {
            if let object = request[parameter] { fieldOperations.append(FieldOperationTexts.Part(operation, object)) }
        }
        self.fieldOperations = fieldOperations
        try Self.check(fieldOperations, text, maximumDepth: maximumDepth)
        ifRevision = request[.ifRevision]
        upserts = request[.upsert]?.kind == .true
        expiry = try Expiry.of(request[.ttl], request[.expiresAt], text)
    }

    /// Reads an element of `operations`, whose text has been validated.
    ///
    /// - Parameter maximumDepth: how deep an item or a patch may nest.
    /// - Throws: `invalid_params` and `limit_exceeded`, without the element's index.
    package init(_ element: JSONSlice, of text: Span<UInt8>, maximumDepth: Int) throws(CRUDError) {
        let members = try Self.members(element, text)
        do throws(CRUDError) {
            try self.init(members, of: text, maximumDepth: maximumDepth)
        } catch {
            throw members.naming(error, text)
        }
    }

    private init(_ members: MemberList, of text: Span<UInt8>, maximumDepth: Int) throws(CRUDError) {
        guard let op = members.value(of: "op", text) else { throw .invalid("op", "is missing") }
        guard let kind = Kind.allCases.first(where: { op.kind == .string && op.equals($0.name, text) }) else {
            throw .invalid("op", "is not an operation")
        }
        var given: [Parameter: JSONSlice] = [:]
        for index in 0..<members.count where !members[index].key.equals("op", text) {
            let (key, value) = members[index]
            guard let parameter = Parameter.named(key, text), parameter.mask & kind.parameters.allowed != 0 else {
                let name = String(decoding: key.decodedString(text), as: UTF8.self)
                throw .invalid(name, "is not a member of this operation")
            }
            if !(kind.takesNull(parameter) && value.kind == .null) { try parameter.check(value, text) }
            if value.depth > maximumDepth { throw .tooDeep(maximum: maximumDepth) }
            given[parameter] = value
        }
        let missing = kind.parameters.missing(from: given.keys.reduce(0) { $0 | $1.mask })
        guard missing == nil, let collection = given[.collection], let id = given[.id] else {
            throw .invalid(missing?.name.description ?? "op", "is missing")
        }
        self.kind = kind
        self.collection = collection
        self.id = id
        value = given[.item] ?? given[.patch]
        fieldOperations = Parameter.fieldOperations.compactMap { parameter, operation in
            given[parameter].map { FieldOperationTexts.Part(operation, $0) }
        }
        try Self.check(fieldOperations, text, maximumDepth: maximumDepth)
        ifRevision = given[.ifRevision]
        upserts = given[.upsert]?.kind == .true
        expiry = try Expiry.of(given[.ttl], given[.expiresAt], text)
    }

    /// Checks field operations.
    private static func check(
        _ operations: [FieldOperationTexts.Part], _ text: Span<UInt8>, maximumDepth: Int
    ) throws(CRUDError) {
        guard !operations.isEmpty else { return }
        _ = try FieldPatch(operations, of: text, maximumDepth: maximumDepth)
    }

    private static func members(_ element: JSONSlice, _ text: Span<UInt8>) throws(CRUDError) -> MemberList {
        guard element.kind == .object else { throw .invalid("operations", "must contain objects") }
        var members = MemberList()
        do throws(JSONSyntaxError) {
            var scanner = JSONScanner(at: element.start)
            scanner.enter()
            var isFirst = true
            while let key = try scanner.nextKey(text, isFirst: &isFirst) {
                members.append(key, try scanner.value(text))
            }
        } catch {
            // The text has been validated before.
            throw CRUDError(.internalError, "the request has changed")
        }
        guard !members.hasDuplicate(text) else {
            throw .invalid("operations", "has an operation with a repeated member")
        }
        return members
    }
}

extension CRUDError {
    /// A text that nests too deeply.
    static func tooDeep(maximum: Int) -> CRUDError {
        CRUDError(
            .limitExceeded, "the request nests too deeply", details: .init(limit: "json_depth", maximum: maximum))
    }
}
