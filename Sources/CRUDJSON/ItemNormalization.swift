/// Converts items to the form in which they are stored: no object has two members with the same name (the last one
/// counts), however that is written.
///
/// So all readers of a stored item, tools of the storage included, see the same members. Nearly every item already has
/// this form; one pass that compares names and skips everything else finds that out. Of the others, and those that have
/// names with escapes, what their names spell is compared.
///
/// Items must be valid JSON, as a ``JSONScanner`` has found; other text is returned unchanged.
package struct ItemNormalization: ~Copyable {
    /// A member's name: the range of its content, and a hash of it.
    private struct Name {
        var start: Int
        var end: Int
        var key: UInt64
    }

    /// The names of all open objects, outermost first.
    private var names: [Name] = []
    /// For each open container the index of its first name; −1 for an array.
    private var containers: [Int] = []

    /// The names of the objects with many.
    private var table = NameTable()
    private var objects = 0

    /// Up to so many names of an object are compared in pairs; more are put into the table at its end.
    private static let maximumCompared = 32

    package init() {}

    /// The item in normal form; nil if it already has it.
    package mutating func normalized(_ item: Span<UInt8>) -> [UInt8]? {
        var work = Work()
        return normalized(item, &work)
    }

    /// As ``normalized(_:)``.
    package mutating func normalized(_ item: Span<UInt8>, _ work: inout Work) -> [UInt8]? {
        isPlain(item, &work) || work.isStopped ? nil : ItemRewriting.normalized(item, &work)
    }

    /// Whether an item is certainly in normal form: it has neither duplicates nor any escape in a name.
    private mutating func isPlain(_ item: Span<UInt8>, _ work: inout Work) -> Bool {
        names.removeAll(keepingCapacity: true)
        containers.removeAll(keepingCapacity: true)
        if objects > 0 {
            table = NameTable()
            objects = 0
        }
        var index = 0
        /// The index of the innermost object's first name; −1 in an array and outside of all containers.
        var first = -1
        /// Whether a string at this place is a name.
        var isName = false
        work.begin(at: index)
        defer { work.end(at: index) }
        while index < item.count, work.passes(index) {
            switch item[index] {
            case UInt8(ascii: "\""):
                let start = index + 1
                let (end, hasEscapes) = Self.endOfString(item, start, &work)
                index = end + 1
                guard isName else { continue }
                isName = false
                if hasEscapes || !insert(start..<min(end, item.count), item, first) { return false }
                continue
            case UInt8(ascii: ","): isName = first >= 0
            case UInt8(ascii: "{"):
                containers.append(first)
                first = names.count
                isName = true
            case UInt8(ascii: "["):
                containers.append(first)
                first = -1
                isName = false
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if first >= 0 {
                    work.end(at: index)
                    if names.count - first > Self.maximumCompared, hasDuplicate(first, item, &work) { return false }
                    work.begin(at: index)
                    names.removeLast(names.count - first)
                }
                first = containers.popLast() ?? -1
                isName = false
            default: break
            }
            index += 1
        }
        return true
    }

    // MARK: Names

    /// Adds a name; returns false if the object already has it.
    private mutating func insert(_ content: Range<Int>, _ item: Span<UInt8>, _ first: Int) -> Bool {
        let name = Name(start: content.lowerBound, end: content.upperBound, key: Self.key(item, content))
        if names.count - first <= Self.maximumCompared {
            for index in first..<names.count where names[index].key == name.key {
                if Self.areEqual(names[index], name, item) { return false }
            }
        }
        names.append(name)
        return true
    }

    /// Whether two of the names from index `first` on are equal.
    private mutating func hasDuplicate(_ first: Int, _ item: Span<UInt8>, _ work: inout Work) -> Bool {
        objects += 1
        for index in first..<names.count {
            let key = JSONSlice(start: names[index].start - 1, end: names[index].end + 1, kind: .string)
            if !table.insert(key, item, of: objects, &work).isNew { return true }
            if work.isStopped { return false }
        }
        return false
    }

    /// A hash of the name's first seven bytes, its last one and its length.
    private static func key(_ item: Span<UInt8>, _ content: Range<Int>) -> UInt64 {
        var key: UInt64 = 0
        for index in content.prefix(7) { key = key << 8 | UInt64(item[index]) }
        guard let last = content.last else { return 0 }
        return key << 8 ^ UInt64(item[last]) &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(content.count) &* 0xC2B2_AE3D_27D4_EB4F
    }

    private static func areEqual(_ left: Name, _ right: Name, _ item: Span<UInt8>) -> Bool {
        guard left.key == right.key, left.end - left.start == right.end - right.start else { return false }
        for offset in 0..<left.end - left.start where item[left.start + offset] != item[right.start + offset] {
            return false
        }
        return true
    }

    // MARK: Strings

    /// The index of the closing quote of the string whose content begins at `start`.
    @inline(__always)
    private static func endOfString(
        _ item: Span<UInt8>, _ start: Int, _ work: inout Work
    ) -> (end: Int, hasEscapes: Bool) {
        let raw = item.bytes
        var index = start
        var hasEscapes = false
        while index < item.count, work.passes(index) {
            if index &+ 8 <= item.count {
                // Eight bytes from `index` on are inside the span, as the line above has checked.
                let word = unsafe raw.unsafeLoadUnaligned(fromUncheckedByteOffset: index, as: UInt64.self)
                let found = marks(UInt64(littleEndian: word))
                if found == 0 {
                    index &+= 8
                    continue
                }
                index &+= found.trailingZeroBitCount >> 3
            }
            if item[index] == UInt8(ascii: "\"") { return (index, hasEscapes) }
            if item[index] == UInt8(ascii: "\\") {
                hasEscapes = true
                index += 1
            }
            index += 1
        }
        return (index, hasEscapes)
    }

    /// The top bit of the lowest byte that is a quote or a backslash is set; bits of higher bytes may be wrong.
    @inline(__always)
    private static func marks(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quote = word ^ (ones &* 0x22)
        let backslash = word ^ (ones &* 0x5C)
        return ((quote &- ones) & ~quote | (backslash &- ones) & ~backslash) & (ones &* 0x80)
    }
}
