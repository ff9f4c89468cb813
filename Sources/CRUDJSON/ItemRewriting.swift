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

    /// What a comparison of two removals counts.
    private static let comparisonWork = 8

    /// The item in normal form; nil if it needs no change, or if it is not valid JSON.
    static func normalized(_ item: Span<UInt8>, _ work: inout Work) -> [UInt8]? {
        var rewriting = ItemRewriting()
        do throws(JSONSyntaxError) {
            try rewriting.findRemovals(item, &work)
            return rewriting.removals.isEmpty ? nil : rewriting.apply(to: item, &work)
        } catch {
            return nil
        }
    }

    private mutating func findRemovals(_ item: Span<UInt8>, _ work: inout Work) throws(JSONSyntaxError) {
        var scanner = JSONScanner()
        /// Whether the innermost container has had no member or element so far.
        var isFirst = true
        repeat {
            // Here a value starts.
            switch try scanner.peekKind(item, &work) {
            case .object:
                scanner.enter()
                containers.append([])
                isFirst = true
            case .array:
                scanner.enter()
                containers.append(nil)
                isFirst = true
            default:
                _ = try scanner.value(item, &work)
            }
            // Here a value has ended, or a container has begun.
            while !containers.isEmpty, try !hasNext(&scanner, item, &isFirst, &work) {
                if let members = containers.popLast(), let members { addRemovals(from: members, item, &work) }
                isFirst = false
            }
        } while !containers.isEmpty
    }

    /// Whether the innermost container has another value. Its name is skipped.
    private mutating func hasNext(
        _ scanner: inout JSONScanner, _ item: Span<UInt8>, _ isFirst: inout Bool, _ work: inout Work
    ) throws(JSONSyntaxError) -> Bool {
        let last = containers.count - 1
        guard containers[last] != nil else { return try scanner.nextElement(item, isFirst: &isFirst, &work) }
        guard let key = try scanner.nextKey(item, isFirst: &isFirst, &work) else { return false }
        containers[last]?.append(key)
        return true
    }

    /// Adds the members of an object whose names are repeated later.
    private mutating func addRemovals(from members: [JSONSlice], _ item: Span<UInt8>, _ work: inout Work) {
        objects += 1
        for (index, key) in members.enumerated().reversed() {
            guard !names.insert(key, item, of: objects, &work).isNew else { continue }
            if work.isStopped { return }
            // There is a next member.
            removals.append(key.start..<members[index + 1].start)
        }
    }

    private mutating func apply(to item: Span<UInt8>, _ work: inout Work) -> [UInt8] {
        removals.sort(&work) { left, right, work in
            _ = work.take(Self.comparisonWork)
            return left.lowerBound < right.lowerBound
        }
        var output: [UInt8] = []
        output.reserveCapacity(item.count)
        var position = 0
        // Those within a member that is removed are skipped.
        for removal in removals where removal.lowerBound >= position {
            output.append(item.extracting(position..<removal.lowerBound))
            position = removal.upperBound
        }
        output.append(item.extracting(position..<item.count))
        return output
    }
}
