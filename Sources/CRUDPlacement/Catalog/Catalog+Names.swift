extension Catalog {
    /// Names in the order of their bytes, in parts of some hundred.
    ///
    /// Each part has a range of names and a version, which is another one when any collection in that range has come,
    /// gone or moved. So whatever is made of the names of a part is made again only when it would differ.
    package struct Names: Sendable {
        package struct Part: Sendable {
            /// No name of the part is before this one, and all names of the parts before are; empty for the first part.
            package let lowest: [UInt8]
            package fileprivate(set) var names: [[UInt8]]
            /// No other part has it, or had it.
            package fileprivate(set) var version: UInt64
        }

        /// There is at least one.
        package private(set) var parts: [Part]
        package private(set) var count: Int
        /// Another one where any collection has come, gone or moved.
        package private(set) var version: UInt64

        /// How many names a part has at most.
        package static let maximumPart = 256

        init(_ sorted: [[UInt8]]) {
            let size = Self.maximumPart / 2
            parts = stride(from: 0, to: sorted.count, by: size).enumerated().map { index, start in
                let names = Array(sorted[start..<min(start + size, sorted.count)])
                return Part(lowest: start == 0 ? [] : names[0], names: names, version: UInt64(index))
            }
            if parts.isEmpty { parts = [Part(lowest: [], names: [], version: 0)] }
            count = sorted.count
            version = UInt64(parts.count)
        }

        /// The index of the part in whose range a name is.
        private func part(of name: [UInt8]) -> Int {
            parts.firstIndex(fromSorted: { name.lexicographicallyPrecedes($0.lowest) }) - 1
        }

        /// - Returns: the index that it has in a part, or would have.
        private static func search(for name: [UInt8], in names: [[UInt8]]) -> (index: Int, isKnown: Bool) {
            let index = names.firstIndex(fromSorted: { !$0.lexicographicallyPrecedes(name) })
            return (index, index < names.count && names[index] == name)
        }

        func contains(_ name: [UInt8]) -> Bool { Self.search(for: name, in: parts[part(of: name)].names).isKnown }

        /// A collection has come, gone or moved.
        ///
        /// - Returns: whether it has come or gone.
        mutating func set(_ name: [UInt8], exists: Bool) -> Bool {
            let number = part(of: name)
            let (index, isKnown) = Self.search(for: name, in: parts[number].names)
            guard isKnown || exists else { return false }
            renew(number)
            guard isKnown != exists else { return false }
            count += exists ? 1 : -1
            if exists {
                parts[number].names.insert(name, at: index)
                if parts[number].names.count > Self.maximumPart { split(number) }
            } else {
                parts[number].names.remove(at: index)
                if parts[number].names.isEmpty, number > 0 {
                    // The one before has its range from now on.
                    parts.remove(at: number)
                    renew(number - 1)
                }
            }
            return true
        }

        private mutating func renew(_ number: Int) {
            parts[number].version = version
            version += 1
        }

        private mutating func split(_ number: Int) {
            let upper = Array(parts[number].names[(Self.maximumPart / 2)...])
            parts[number].names.removeLast(upper.count)
            parts.insert(Part(lowest: upper[0], names: upper, version: version), at: number + 1)
            version += 1
        }
    }
}

extension RandomAccessCollection where Index == Int {
    /// The index of the first element that fulfils a condition, which no element does before one that does not.
    func firstIndex(fromSorted condition: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if condition(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
