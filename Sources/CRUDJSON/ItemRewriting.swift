/// The second half of ``ItemNormalization``: rewrites an item that may not be in normal form.
///
/// One pass finds what is to be removed, at the end of each object: a member whose name is repeated later, with the
/// comma behind it. Everything else is copied.
struct ItemRewriting: ~Copyable {
    /// What is to be removed.
    private var removals: [Range<Int>] = []
    /// The names of the open objects' members, nil for an open array, outermost first.
    private var containers: [[JSONSlice]?] = []
    /// The names of all objects that have ended.
    private var names = NameTable()
    private var objects = 0

    /// The item in normal form; nil if it needs no change, or if it is not valid JSON.
    static func normalized(_ item: Span<UInt8>) -> [UInt8]? {
        var rewriting = ItemRewriting()
        do throws(JSONSyntaxError) {
            try rewriting.findRemovals(item)
        } catch {
            return nil
        }
        return rewriting.removals.isEmpty ? nil : rewriting.apply(to: item)
    }

    private mutating func findRemovals(_ item: Span<UInt8>) throws(JSONSyntaxError) {
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
                if let members = containers.popLast(), let members { addRemovals(from: members, item) }
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
        containers[last]?.append(key)
        return true
    }

    /// Adds the members of an object whose names are repeated later.
    private mutating func addRemovals(from members: [JSONSlice], _ item: Span<UInt8>) {
        objects += 1
        for (index, key) in members.enumerated().reversed() where !names.insert(key, item, of: objects).isNew {
            // There is a next member.
            removals.append(key.start..<members[index + 1].start)
        }
    }

    private mutating func apply(to item: Span<UInt8>) -> [UInt8] {
        removals.sort { $0.lowerBound < $1.lowerBound }
        var output: [UInt8] = []
        output.reserveCapacity(item.count)
        var position = 0
        // Those within a member that is removed are skipped.
        for removal in removals where removal.lowerBound >= position {
            for index in position..<removal.lowerBound { output.append(item[index]) }
            position = removal.upperBound
        }
        for index in position..<item.count { output.append(item[index]) }
        return output
    }
}
