import CRUDJSON

/// Field operations, ready to be applied to items (PROTOCOL.md, "Field operations").
///
/// The paths are a tree of names, as the members of a ``MergePatch`` are. Operations and item are scanned once each, a
/// name is found in constant time, and so is an element of an array: the time is linear in both. The depth of recursion
/// is that of the paths, which is limited, or of the values, which a peer's text must limit.
package struct FieldPatch: ~Copyable {
    /// A name of a path.
    struct Member {
        /// Where it stands in `nameBytes`.
        var name: Range<Int>
        /// The object that has it.
        var object: Int
        var change: Change
        /// The next one of its object, in the order of the text; −1: it is the last.
        var next = -1
        /// Whether the item has it.
        var isFound = false
    }

    /// What becomes of a member.
    enum Change {
        /// The operation is applied to it, with an operand that stands in the text.
        case operation(FieldOperation, JSONSlice)
        /// Paths lead into it: it is an object, by its number.
        case object(Int)
    }

    /// An object that paths lead through.
    struct Object {
        /// The member that it is the value of; −1: it is the item.
        var member: Int
        /// Its first member and its last one; −1: it has none.
        var first = -1
        var last = -1
    }

    var members: [Member] = []
    var objects: [Object] = [Object(member: -1)]
    var names = NameTable()
    var nameBytes: [UInt8] = []
    private var nameCount = 0

    /// How many names the paths may have together.
    package static let maximumNames = 1000

    /// - Parameters:
    ///   - parts: the operations, which are valid JSON.
    ///   - text: where they stand, and their operands as long as they are applied.
    ///   - maximumDepth: how many names a path may have.
    /// - Throws: `invalid_params` and `limit_exceeded`.
    package init(
        _ parts: [FieldOperationTexts.Part], of text: Span<UInt8>, maximumDepth: Int
    ) throws(CRUDError) {
        for part in parts { try insert(part, text, maximumDepth) }
    }

    private mutating func insert(
        _ part: FieldOperationTexts.Part, _ text: Span<UInt8>, _ maximumDepth: Int
    ) throws(CRUDError) {
        let operation = part.operation
        guard part.object.kind == .object else { throw .invalid(operation.name.description, "must be an object") }
        var fields: [(path: JSONSlice, operand: JSONSlice)] = []
        do throws(JSONSyntaxError) {
            var scanner = JSONScanner(at: part.object.start)
            scanner.enter()
            var isFirst = true
            while fields.count <= Self.maximumNames, let path = try scanner.nextKey(text, isFirst: &isFirst) {
                fields.append((path, try scanner.value(text)))
            }
        } catch {
            // The text has been validated before.
            throw CRUDError(.internalError, "the operations have changed")
        }
        for (path, operand) in fields {
            try insert(path.decodedString(text), operation, operand, maximumDepth)
        }
    }

    /// Inserts a path.
    ///
    /// - Parameter text: the path as it is written in `fields`.
    private mutating func insert(
        _ text: [UInt8], _ operation: FieldOperation, _ operand: JSONSlice, _ maximumDepth: Int
    ) throws(CRUDError) {
        func invalid(_ reason: String) -> CRUDError {
            .invalid(operation.name.description, "has the path \(quoted(text)): \(reason)")
        }
        let dots = text.count { $0 == UInt8(ascii: ".") }
        nameCount += dots + 1
        guard nameCount <= Self.maximumNames else {
            throw Self.exceeded("query_nodes", Self.maximumNames, "the field operations have paths with more names")
        }
        guard let path = PropertyPath(utf8: text) else {
            throw invalid("a backslash precedes neither a dot nor a backslash")
        }
        guard path.names.count <= maximumDepth else {
            throw Self.exceeded("json_depth", maximumDepth, "the path \(quoted(text)) has more names")
        }
        guard operand.kind == (operation.takesNumber ? .number : .array) else {
            throw invalid(operation.takesNumber ? "its value must be a number" : "its value must be an array")
        }
        guard insert(path, .operation(operation, operand)) else {
            throw invalid("it occurs twice, or one of two paths lies within the other")
        }
    }

    /// Returns false if the path, or the beginning of one, is there already.
    private mutating func insert(_ path: PropertyPath, _ change: Change) -> Bool {
        var object = 0
        for (position, name) in path.names.enumerated() {
            let name = Array(name.utf8)
            let isLast = position == path.names.count - 1
            let (index, isNew) = names.insert(0..<name.count, name.span, of: object)
            if isNew {
                append(name, of: object, isLast ? change : .object(objects.count))
                if !isLast { objects.append(Object(member: index)) }
            } else if isLast {
                return false
            }
            guard case .object(let next) = members[index].change else { return isLast }
            object = next
        }
        return true
    }

    private mutating func append(_ name: [UInt8], of object: Int, _ change: Change) {
        let index = members.count
        let start = nameBytes.count
        nameBytes += name
        members.append(Member(name: start..<nameBytes.count, object: object, change: change))
        if objects[object].last >= 0 {
            members[objects[object].last].next = index
        } else {
            objects[object].first = index
        }
        objects[object].last = index
    }

    private static func exceeded(_ limit: String, _ maximum: Int, _ message: String) -> CRUDError {
        CRUDError(
            .limitExceeded, "\(message) than \(maximum)", details: .init(limit: limit, maximum: maximum))
    }
}
