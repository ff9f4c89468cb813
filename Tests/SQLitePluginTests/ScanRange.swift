import CRUDPluginABI

/// A range of a scan or a count, and where a scan resumes.
struct ScanRange {
    var order = CRUDD_BY_ID
    var index = 0
    var isUnkeyed = false
    var lower = ""
    var upper = ""
    var sequences: (lower: UInt64, upper: UInt64) = (0, 0)
    var afterKey = ""
    var afterID = ""
    var isReversed = false

    static let all = ScanRange()

    /// The ids that begin with `prefix`.
    static func prefix(_ prefix: String, after id: String = "") -> ScanRange {
        var scalars = Array(prefix.unicodeScalars)
        while scalars.last == "\u{10FFFF}" { scalars.removeLast() }
        if let last = scalars.popLast() {
            scalars.append(Unicode.Scalar(last.value + 1) ?? "\u{E000}")
        }
        return ScanRange(lower: prefix, upper: scalars.map(String.init).joined(), afterID: id)
    }

    static func after(_ id: String, isReversed: Bool = false) -> ScanRange {
        ScanRange(afterID: id, isReversed: isReversed)
    }

    static func key(
        _ index: Int, from lower: String = "", below upper: String = "", after: (key: String, id: String) = ("", ""),
        isReversed: Bool = false
    ) -> ScanRange {
        ScanRange(
            order: CRUDD_BY_KEY, index: index, lower: lower, upper: upper, afterKey: after.key, afterID: after.id,
            isReversed: isReversed)
    }

    static func unkeyed(_ index: Int, after id: String = "", isReversed: Bool = false) -> ScanRange {
        ScanRange(order: CRUDD_BY_KEY, index: index, isUnkeyed: true, afterID: id, isReversed: isReversed)
    }

    static func sequence(from lower: UInt64 = 0, below upper: UInt64 = 0, isReversed: Bool = false) -> ScanRange {
        ScanRange(order: CRUDD_BY_SEQUENCE, sequences: (lower, upper), isReversed: isReversed)
    }

    /// The range as a call takes it.
    func make(in arena: Arena) -> UnsafePointer<crudd_range> {
        var range = crudd_range()
        range.struct_size = UInt32(MemoryLayout<crudd_range>.size)
        range.flags = isUnkeyed ? UInt32(CRUDD_RANGE_UNKEYED) : 0
        range.order = UInt32(order)
        range.index = UInt32(index)
        range.lower = arena.bytes(lower)
        range.upper = arena.bytes(upper)
        range.lower_sequence = sequences.lower
        range.upper_sequence = sequences.upper
        return UnsafePointer(arena.array([range]))
    }
}
