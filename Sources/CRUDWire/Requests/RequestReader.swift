package import CRUDJSON
import CRUDModel

/// Reads JSON-RPC 2.0 requests in one pass over their text.
///
/// The pass validates the whole text and collects the members of the request object and of `params`. They are checked
/// afterwards, because `params` may precede `method`, and `id` may follow both: the reply to an invalid request needs
/// the id. A value of this type is reused for one frame after another and keeps its memory.
package struct RequestReader: ~Copyable {
    /// The contents of a frame.
    package enum Frame {
        /// One request, which has been read.
        case request
        /// A batch array with these elements, which have still to be read one by one.
        case array([JSONSlice])
    }

    private var scanner = JSONScanner()
    private var members = MemberList()
    private var parameters = MemberList()
    private var isObject = true
    private let maximumDepth: Int
    private let maximumElements: Int
    private let methods = MethodTable.traits

    /// - Parameters:
    ///   - maximumDepth: how deep an item, or any other member of `params`, may nest.
    ///   - maximumElements: of a longer batch array only one element more than these is returned.
    package init(maximumDepth: Int, maximumElements: Int = .max - 1) {
        self.maximumDepth = maximumDepth
        self.maximumElements = maximumElements
    }

    /// Reads a frame: a single request into `request`, or the ranges of a batch array's elements.
    ///
    /// - Throws: `parse_error` for what is not valid JSON, `invalid_request` for an empty array, and all that
    ///   ``read(element:of:into:)`` throws.
    package mutating func read(frame text: Span<UInt8>, into request: inout Request) throws(RequestError) -> Frame {
        if CompactRequest.read(text, methods, &scanner, maximumDepth: maximumDepth, into: &request) {
            return .request
        }
        scanner.reset()
        let elements: [JSONSlice]?
        do throws(JSONSyntaxError) {
            elements = try scan(frame: text)
        } catch {
            throw RequestError(Self.parseError(error))
        }
        guard let elements else {
            try check(text, into: &request)
            return .request
        }
        if elements.isEmpty { throw RequestError(CRUDError(.invalidRequest, "the batch array is empty")) }
        return .array(elements)
    }

    /// Reads one element of a batch array, whose text has been validated.
    ///
    /// - Throws: `invalid_request`, `method_not_found`, `invalid_params`, and `limit_exceeded` for too deep a text,
    ///   each with the id for the reply.
    package mutating func read(
        element: JSONSlice, of text: Span<UInt8>, into request: inout Request
    ) throws(RequestError) {
        scanner.reset(at: element.start)
        do throws(JSONSyntaxError) {
            try scanMembers(text)
        } catch {
            throw RequestError(Self.parseError(error))
        }
        try check(text, into: &request)
    }

    // MARK: Scanning

    /// Scans a whole frame; returns the elements if it is an array.
    private mutating func scan(frame text: Span<UInt8>) throws(JSONSyntaxError) -> [JSONSlice]? {
        var elements: [JSONSlice]?
        if try scanner.peekKind(text) == .array {
            scanner.enter()
            var found: [JSONSlice] = []
            var isFirst = true
            while try scanner.nextElement(text, isFirst: &isFirst) {
                let element = try scanner.value(text)
                if found.count <= maximumElements { found.append(element) }
            }
            elements = found
        } else {
            try scanMembers(text)
        }
        try scanner.expectEnd(text)
        return elements
    }

    /// Scans a request: its members, and those of `params` if that is an object. A value of another type has none.
    private mutating func scanMembers(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        members.removeAll()
        parameters.removeAll()
        isObject = try scanner.peekKind(text) == .object
        guard isObject else {
            _ = try scanner.value(text)
            return
        }
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(text, isFirst: &isFirst) {
            guard key.equals("params", text), try scanner.peekKind(text) == .object else {
                members.append(key, try scanner.value(text), isEssential: Self.isOfEnvelope(key, text))
                continue
            }
            let start = scanner.position
            scanner.enter()
            var isFirst = true
            while let key = try scanner.nextKey(text, isFirst: &isFirst) {
                parameters.append(key, try scanner.value(text))
            }
            members.append(
                key, JSONSlice(start: start, end: scanner.position, kind: .object, depth: 1), isEssential: true)
        }
    }

    private static func isOfEnvelope(_ key: JSONSlice, _ text: Span<UInt8>) -> Bool {
        key.equals("jsonrpc", text) || key.equals("id", text) || key.equals("method", text)
            || key.equals("params", text)
    }

    private static func parseError(_ error: JSONSyntaxError) -> CRUDError {
        CRUDError(.parseError, "\(error.reason.rawValue) at byte \(error.offset)")
    }

    // MARK: Checking

    /// Makes a request of the scanned members, or throws what is wrong with them.
    private func check(_ text: Span<UInt8>, into request: inout Request) throws(RequestError) {
        request.reset()
        let identity = identity(text)
        do throws(CRUDError) {
            request.id = identity.id
            if members.deepest > maximumDepth || parameters.nest(deeperThan: maximumDepth, text) { throw tooDeep }
            if members.hasDuplicate(text) || parameters.hasDuplicate(text) {
                throw CRUDError(.invalidRequest, "a member occurs twice")
            }
            try checkEnvelope(identity, text)
            request.traceparent = members.value(of: "traceparent", text)
        } catch {
            let isTooDeep = error.code == .limitExceeded
            throw RequestError(
                isTooDeep ? parameters.naming(error, text) : error, id: identity.id,
                isNotification: identity == .absent && isTooDeep)
        }
        do throws(CRUDError) {
            try checkMethod(text, into: &request)
        } catch {
            let isOfMethod = error.code != .methodNotFound
            throw RequestError(
                isOfMethod ? parameters.naming(error, text) : error, id: identity.id,
                isNotification: request.isNotification, method: isOfMethod ? request.method : nil)
        }
    }

    private var tooDeep: CRUDError { .tooDeep(maximum: maximumDepth) }

    /// The `id` member.
    private enum Identity: Equatable {
        case absent, invalid
        case valid(JSONSlice)

        var id: JSONSlice? {
            if case .valid(let slice) = self { slice } else { nil }
        }
    }

    private func identity(_ text: Span<UInt8>) -> Identity {
        var found = Identity.absent
        for index in 0..<members.count where members[index].key.equals("id", text) {
            guard found == .absent else { return .invalid }
            let value = members[index].value
            found = Self.isIdentity(value, text) ? .valid(value) : .invalid
        }
        return found
    }

    /// Whether a value may be the id of a request.
    private static func isIdentity(_ value: JSONSlice, _ text: Span<UInt8>) -> Bool {
        switch value.kind {
        case .string, .null: true
        case .number: value.isInteger(text)
        default: false
        }
    }

    private func checkEnvelope(_ identity: Identity, _ text: Span<UInt8>) throws(CRUDError) {
        guard isObject else { throw CRUDError(.invalidRequest, "a request must be an object") }
        if identity == .invalid {
            throw CRUDError(.invalidRequest, "`id` must be a string, an integer or null, and occur once")
        }
        guard let version = members.value(of: "jsonrpc", text), version.kind == .string, version.equals("2.0", text)
        else { throw CRUDError(.invalidRequest, "`jsonrpc` must be \"2.0\"") }
        guard members.value(of: "method", text)?.kind == .string else {
            throw CRUDError(.invalidRequest, "`method` must be a string")
        }
    }

    private func checkMethod(_ text: Span<UInt8>, into request: inout Request) throws(CRUDError) {
        guard let name = members.value(of: "method", text), let traits = traits(of: name, text) else {
            throw CRUDError(.methodNotFound, "there is no such method")
        }
        request.traits = traits
        if let params = members.value(of: "params", text), params.kind != .object {
            throw .invalid("params", "must be an object")
        }
        for index in 0..<parameters.count {
            let member = parameters[index]
            guard let parameter = Parameter.named(member.key, text), parameter.mask & traits.allowed != 0 else {
                let name = String(decoding: member.key.decodedString(text), as: UTF8.self)
                throw .invalid(name, "is not a member of this method's `params`")
            }
            let isRemoval = parameter == .ttl && traits.method.takesNullTTL && member.value.kind == .null
            if parameter == .id, traits.method == .requestCancel {
                guard Self.isIdentity(member.value, text) else {
                    throw parameter.invalid("must be the id of a request: a string, an integer or null")
                }
            } else if !isRemoval {
                try parameter.check(member.value, text)
            }
            request.set(parameter, member.value)
        }
        if let missing = request.missingParameter { throw .invalid(missing.name.description, "is missing") }
    }

    /// The row of the method table with this name; nil if there is none.
    private func traits(of name: JSONSlice, _ text: Span<UInt8>) -> MethodTraits? {
        for row in methods.indices where name.equals(methods[row].name, text) { return methods[row] }
        return nil
    }
}
