/// The second half of ``ItemNormalization``: rewrites an item that is not in normal form.
///
/// One pass finds the edits, at the end of each object: a member whose name is repeated later is removed, with the
/// comma behind it, and a name with unnecessary escapes is replaced. Everything else is copied.
struct ItemRewriting {
    private struct Member {
        /// The name with its quotes.
        var key: Range<Int>
        /// The name with its quotes, as it is written in normal form.
        var normalized: [UInt8]
        var isNormalized: Bool
    }

    private struct Edit {
        var range: Range<Int>
        var replacement: [UInt8]
    }

    private var edits: [Edit] = []
    /// The members of the open objects, nil for an open array, outermost first.
    private var containers: [[Member]?] = []

    /// The item in normal form; nil if it needs no change, or if it is not valid JSON.
    static func normalized(_ item: Span<UInt8>) -> [UInt8]? {
        var rewriting = ItemRewriting()
        do throws(JSONSyntaxError) {
            try rewriting.findEdits(item)
        } catch {
            return nil
        }
        return rewriting.edits.isEmpty ? nil : rewriting.apply(to: item)
    }

    private mutating func findEdits(_ item: Span<UInt8>) throws(JSONSyntaxError) {
        var scanner = JSONScanner()
        /// Whether the innermost container has had no member or element so far.
        var isFirst = true
        repeat {
            // Here a value starts.
            switch try scanner.peekKind(item) {
            case .object:
                scanner.enter()
                containers.append([])
                isFirst = true
            case .array:
                scanner.enter()
                containers.append(nil)
                isFirst = true
            default:
                _ = try scanner.value(item)
            }
            // Here a value has ended, or a container has begun.
            while !containers.isEmpty, try !hasNext(&scanner, item, &isFirst) {
                if let members = containers.popLast(), let members { addEdits(for: members) }
                isFirst = false
            }
        } while !containers.isEmpty
    }

    /// Whether the innermost container has another value. Its name is skipped.
    private mutating func hasNext(
        _ scanner: inout JSONScanner, _ item: Span<UInt8>, _ isFirst: inout Bool
    ) throws(JSONSyntaxError) -> Bool {
        let last = containers.count - 1
        guard containers[last] != nil else { return try scanner.nextElement(item, isFirst: &isFirst) }
        guard let key = try scanner.nextKey(item, isFirst: &isFirst) else { return false }
        var name: [UInt8] = []
        name.appendJSONString(key.decodedString(item))
        let isNormalized = !key.hasEscapes || item.extracting(key.range).elementsEqual(name)
        containers[last]?.append(Member(key: key.range, normalized: name, isNormalized: isNormalized))
        return true
    }

    /// Adds the edits of an object's members.
    private mutating func addEdits(for members: [Member]) {
        var laterNames: Set<[UInt8]> = []
        for (index, member) in members.enumerated().reversed() {
            if !laterNames.insert(member.normalized).inserted {
                // The name is repeated later, so there is a next member.
                edits.append(Edit(range: member.key.lowerBound..<members[index + 1].key.lowerBound, replacement: []))
            } else if !member.isNormalized {
                edits.append(Edit(range: member.key, replacement: member.normalized))
            }
        }
    }

    private mutating func apply(to item: Span<UInt8>) -> [UInt8] {
        edits.sort { $0.range.lowerBound < $1.range.lowerBound }
        var output: [UInt8] = []
        output.reserveCapacity(item.count)
        var position = 0
        // Edits within a removed member are skipped.
        for edit in edits where edit.range.lowerBound >= position {
            for index in position..<edit.range.lowerBound { output.append(item[index]) }
            output += edit.replacement
            position = edit.range.upperBound
        }
        for index in position..<item.count { output.append(item[index]) }
        return output
    }
}

extension Span<UInt8> {
    fileprivate func elementsEqual(_ bytes: [UInt8]) -> Bool {
        guard count == bytes.count else { return false }
        for index in indices where self[index] != bytes[index] { return false }
        return true
    }
}
