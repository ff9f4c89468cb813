package import CRUDJSON
import CRUDModel

/// Reads JSON-RPC 2.0 requests in one pass over their text.
///
/// The pass validates the whole text and collects the members of the request object and of `params`, in whatever order
/// they come. Only then are they judged, since `params` may stand before `method`, and `id` after both: the answer to
/// a faulty request needs the id. A value of this type is used for one frame after the other and keeps its memory.
package struct RequestReader: ~Copyable {
    /// What a frame holds.
    package enum Frame {
        /// One request, which has been read.
        case request
        /// A batch array with these elements, which are yet to be read one by one.
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
    ///   - maximumElements: of a longer batch array only one more than these is noted, so that it is known for too long.
    package init(maximumDepth: Int, maximumElements: Int = .max - 1) {
        self.maximumDepth = maximumDepth
        self.maximumElements = maximumElements
    }

    /// Reads a frame: a single request into `request`, a batch array as far as its elements' ranges.
    ///
    /// - Throws: `parse_error` for what is no JSON, `invalid_request` for an empty array, and all that
    ///   ``read(element:of:into:)`` throws.
    package mutating func read(frame text: Span<UInt8>, into request: inout Request) throws(RequestFault) -> Frame {
        scanner.reset()
        let elements: [JSONSlice]?
        do throws(JSONSyntaxError) {
            elements = try scan(frame: text)
        } catch {
            throw RequestFault(Self.parseError(error))
        }
        guard let elements else {
            try judge(text, into: &request)
            return .request
        }
        if elements.isEmpty { throw RequestFault(CRUDError(.invalidRequest, "the batch array is empty")) }
        return .array(elements)
    }

    /// Reads one element of a batch array, whose text has been found to be JSON.
    ///
    /// - Throws: `invalid_request`, `method_not_found`, `invalid_params`, and `limit_exceeded` for too deep a text,
    ///   each with the id to answer it to.
    package mutating func read(
        element: JSONSlice, of text: Span<UInt8>, into request: inout Request
    ) throws(RequestFault) {
        scanner.reset(at: element.start)
        do throws(JSONSyntaxError) {
            try scanMembers(text)
        } catch {
            throw RequestFault(Self.parseError(error))
        }
        try judge(text, into: &request)
    }

    // MARK: Scanning

    /// Scans a whole frame; answers the elements where it is an array.
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
        guard scanner.isAtEnd(text) else {
            throw JSONSyntaxError(reason: .trailingBytes, offset: scanner.position)
        }
        return elements
    }

    /// Scans a request: its members, and those of `params` where that is an object. What is no object has no members.
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
                members.append(key, try scanner.value(text))
                continue
            }
            let start = scanner.position
            scanner.enter()
            var isFirst = true
            while let key = try scanner.nextKey(text, isFirst: &isFirst) {
                parameters.append(key, try scanner.value(text))
            }
            members.append(key, JSONSlice(start: start, end: scanner.position, kind: .object, depth: 1))
        }
    }

    private static func parseError(_ error: JSONSyntaxError) -> CRUDError {
        CRUDError(.parseError, "\(error.reason.rawValue) at byte \(error.offset)")
    }

    // MARK: Judging

    /// Turns the members that were scanned into a request, or tells what is wrong with them.
    private func judge(_ text: Span<UInt8>, into request: inout Request) throws(RequestFault) {
        request.reset()
        let identity = identity(text)
        do throws(CRUDError) {
            request.id = identity.id
            if members.deepest > maximumDepth || parameters.nest(deeperThan: maximumDepth, text) { throw tooDeep }
            if members.hasDuplicate(text) || parameters.hasDuplicate(text) {
                throw CRUDError(.invalidRequest, "a member is there twice")
            }
            try judgeEnvelope(identity, text)
        } catch {
            throw RequestFault(
                error, id: identity.id, isNotification: identity == .absent && error.code == .limitExceeded)
        }
        do throws(CRUDError) {
            try judgeMethod(text, into: &request)
        } catch {
            throw RequestFault(error, id: identity.id, isNotification: request.isNotification)
        }
    }

    private var tooDeep: CRUDError { .tooDeep(maximum: maximumDepth) }

    /// What the `id` member says of whom to answer.
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
            switch value.kind {
            case .string, .null: found = .valid(value)
            case .number: found = value.isInteger(text) ? .valid(value) : .invalid
            default: found = .invalid
            }
        }
        return found
    }

    private func judgeEnvelope(_ identity: Identity, _ text: Span<UInt8>) throws(CRUDError) {
        guard isObject else { throw CRUDError(.invalidRequest, "a request is an object") }
        if identity == .invalid { throw CRUDError(.invalidRequest, "`id` is a string, an integer or null, once") }
        guard let version = members.value(of: "jsonrpc", text), version.kind == .string, version.equals("2.0", text)
        else { throw CRUDError(.invalidRequest, "`jsonrpc` must be \"2.0\"") }
        guard members.value(of: "method", text)?.kind == .string else {
            throw CRUDError(.invalidRequest, "`method` must be a string")
        }
    }

    private func judgeMethod(_ text: Span<UInt8>, into request: inout Request) throws(CRUDError) {
        guard let name = members.value(of: "method", text), let traits = traits(of: name, text) else {
            throw CRUDError(.methodNotFound, "there is no such method")
        }
        request.traits = traits
        if let params = members.value(of: "params", text), params.kind != .object {
            throw Self.invalid("params", "must be an object")
        }
        for index in 0..<parameters.count {
            let member = parameters[index]
            guard let parameter = Parameter.named(member.key, text), parameter.mask & traits.allowed != 0 else {
                let name = String(decoding: member.key.decodedString(text), as: UTF8.self)
                throw Self.invalid(name, "is no member of this method's `params`")
            }
            try parameter.check(member.value, text)
            request.set(parameter, member.value)
        }
        if let missing = request.missingParameter { throw Self.invalid(missing.name.description, "is missing") }
    }

    /// The row of the method table with this name; nil if there is none.
    private func traits(of name: JSONSlice, _ text: Span<UInt8>) -> MethodTraits? {
        for row in methods.indices where name.equals(methods[row].name, text) { return methods[row] }
        return nil
    }

    private static func invalid(_ member: String, _ fault: String) -> CRUDError {
        CRUDError(.invalidParams, "`\(member)` \(fault)", details: .init(member: member))
    }
}
