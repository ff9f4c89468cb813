/// The second half of ``ItemNormalization``: writes an item anew that is not in normal form.
///
/// One pass finds what has to change, at the end of each object: a member whose name comes again later goes, with the
/// comma behind it, and a name that is spelt otherwise than it need be is replaced. What is left is copied.
struct ItemRewriting {
    private struct Member {
        /// The name with its quotes, as it stands and as it should be spelt.
        var key: Range<Int>
        var spelling: [UInt8]
        var isSpeltSo: Bool
    }

    private struct Edit {
        var range: Range<Int>
        var replacement: [UInt8]
    }

    private var edits: [Edit] = []
    /// The members of the objects that are open, nil for an array, outermost first.
    private var containers: [[Member]?] = []

    /// The item in normal form; nil where there is nothing to change, or where it is no JSON.
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
        /// Whether the innermost container has had no member or element yet.
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
                if let members = containers.popLast(), let members { settle(members) }
                isFirst = false
            }
        } while !containers.isEmpty
    }

    /// Whether the innermost container has another value, its name passed.
    private mutating func hasNext(
        _ scanner: inout JSONScanner, _ item: Span<UInt8>, _ isFirst: inout Bool
    ) throws(JSONSyntaxError) -> Bool {
        let last = containers.count - 1
        guard containers[last] != nil else { return try scanner.nextElement(item, isFirst: &isFirst) }
        guard let key = try scanner.nextKey(item, isFirst: &isFirst) else { return false }
        var spelling: [UInt8] = []
        spelling.appendJSONString(key.decodedString(item))
        let isSpeltSo = !key.hasEscapes || item.extracting(key.range).elementsEqual(spelling)
        containers[last]?.append(Member(key: key.range, spelling: spelling, isSpeltSo: isSpeltSo))
        return true
    }

    /// Notes what has to change among the members of an object.
    private mutating func settle(_ members: [Member]) {
        var later: Set<[UInt8]> = []
        for (index, member) in members.enumerated().reversed() {
            if !later.insert(member.spelling).inserted {
                // The same name comes later, so there is a next member.
                edits.append(Edit(range: member.key.lowerBound..<members[index + 1].key.lowerBound, replacement: []))
            } else if !member.isSpeltSo {
                edits.append(Edit(range: member.key, replacement: member.spelling))
            }
        }
    }

    private mutating func apply(to item: Span<UInt8>) -> [UInt8] {
        edits.sort { $0.range.lowerBound < $1.range.lowerBound }
        var output: [UInt8] = []
        output.reserveCapacity(item.count)
        var position = 0
        // An edit inside of what has gone is none.
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
