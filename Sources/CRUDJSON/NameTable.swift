/// The names of the members of many objects, each with the number of its object: finds whether, and as which, one is
/// there, in time that does not depend on how many there are.
///
/// It is a hash table with linear probing over memory of its own, for an item or a patch may have hundreds of thousands
/// of members. The hash is Swift's, which is seeded, so that nobody can choose names that collide.
package struct NameTable: ~Copyable {
    private struct Entry {
        var hash: Int
        var object: Int
        /// The name's range in `bytes`.
        var start: Int
        var end: Int
    }

    private var entries: [Entry] = []
    private var bytes: [UInt8] = []
    /// For each slot the index of its entry; −1: it is free. Their number is a power of two; at most half are taken.
    private var slots = [Int32](repeating: -1, count: 16)
    private var decoded: [UInt8] = []

    package init() {}

    // MARK: Names of members

    /// Inserts the name of a member.
    ///
    /// - Parameters:
    ///   - key: as a scanner has found it in the text, escaped or not.
    ///   - text: what has the key.
    ///   - object: the object that has the member.
    ///   - work: what it counts; where that is stopped, the table means nothing.
    /// - Returns: its index, which counts names from 0, and whether the object did not have it before.
    package mutating func insert(
        _ key: JSONSlice, _ text: Span<UInt8>, of object: Int, _ work: inout Work
    ) -> (index: Int, isNew: Bool) {
        if !key.hasEscapes { return insert(key.content, text, of: object, &work) }
        decode(key, text, &work)
        let name = decoded
        return insert(0..<name.count, name.span, of: object, &work)
    }

    /// The index of a member's name; nil if the object does not have it.
    package mutating func index(
        of key: JSONSlice, _ text: Span<UInt8>, in object: Int, _ work: inout Work
    ) -> Int? {
        if !key.hasEscapes { return index(of: key.content, text, in: object, &work) }
        decode(key, text, &work)
        let name = decoded
        return index(of: 0..<name.count, name.span, in: object, &work)
    }

    private mutating func decode(_ key: JSONSlice, _ text: Span<UInt8>, _ work: inout Work) {
        decoded.removeAll(keepingCapacity: true)
        key.appendDecodedString(text, to: &decoded, &work)
    }

    // MARK: Names

    /// The name with an index, in UTF-8.
    package func name(at index: Int) -> ArraySlice<UInt8> { bytes[entries[index].start..<entries[index].end] }

    /// The index of a name in UTF-8; nil if the object does not have it.
    package func index(
        of name: Range<Int>, _ text: Span<UInt8>, in object: Int, _ work: inout Work
    ) -> Int? {
        let hash = Self.hash(name, text, object, &work)
        let entry = slots[slot(of: name, text, in: object, hash, &work)]
        return entry < 0 ? nil : Int(entry)
    }

    /// Inserts a name in UTF-8.
    ///
    /// - Returns: its index, which counts names from 0, and whether the object did not have it before.
    package mutating func insert(
        _ name: Range<Int>, _ text: Span<UInt8>, of object: Int
    ) -> (index: Int, isNew: Bool) {
        var work = Work()
        return insert(name, text, of: object, &work)
    }

    /// As ``insert(_:_:of:)``.
    package mutating func insert(
        _ name: Range<Int>, _ text: Span<UInt8>, of object: Int, _ work: inout Work
    ) -> (index: Int, isNew: Bool) {
        let hash = Self.hash(name, text, object, &work)
        let slot = slot(of: name, text, in: object, hash, &work)
        if slots[slot] >= 0 { return (Int(slots[slot]), false) }
        let start = bytes.count
        bytes.append(text.extracting(name))
        slots[slot] = Int32(entries.count)
        entries.append(Entry(hash: hash, object: object, start: start, end: bytes.count))
        if entries.count * 2 > slots.count { grow() }
        return (entries.count - 1, true)
    }

    /// The slot that has the name, or else the free one where it belongs.
    private func slot(
        of name: Range<Int>, _ text: Span<UInt8>, in object: Int, _ hash: Int, _ work: inout Work
    ) -> Int {
        let mask = slots.count - 1
        var slot = hash & mask
        while slots[slot] >= 0 {
            let entry = entries[Int(slots[slot])]
            if entry.hash == hash, entry.object == object, isEqual(entry, name, text, &work) { return slot }
            slot = (slot + 1) & mask
        }
        return slot
    }

    private func isEqual(
        _ entry: Entry, _ name: Range<Int>, _ text: Span<UInt8>, _ work: inout Work
    ) -> Bool {
        guard entry.end - entry.start == name.count else { return false }
        work.begin(at: 0)
        for offset in 0..<name.count {
            guard work.passes(offset), bytes[entry.start + offset] == text[name.lowerBound + offset] else {
                return false
            }
        }
        return true
    }

    private mutating func grow() {
        slots = [Int32](repeating: -1, count: slots.count * 2)
        let mask = slots.count - 1
        for (index, entry) in entries.enumerated() {
            var slot = entry.hash & mask
            while slots[slot] >= 0 { slot = (slot + 1) & mask }
            slots[slot] = Int32(index)
        }
    }

    private static func hash(_ name: Range<Int>, _ text: Span<UInt8>, _ object: Int, _ work: inout Work) -> Int {
        var hasher = Hasher()
        hasher.combine(object)
        var start = name.lowerBound
        repeat {
            let end = min(start + Work.interval, name.upperBound)
            guard work.take(end - start + hashWork) else { return 0 }
            text.extracting(start..<end).withUnsafeBytes { hasher.combine(bytes: $0) }
            start = end
        } while start < name.upperBound
        return hasher.finalize()
    }

    /// What a name counts beside its bytes.
    private static let hashWork = 32
}
