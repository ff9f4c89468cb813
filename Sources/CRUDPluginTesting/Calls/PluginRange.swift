import CRUDPluginABI

/// Which records of a collection to scan or to count, and in which order.
package struct PluginRange: Sendable {
    package enum Order: Sendable, Equatable {
        case id, sequence
        /// Only the records without a sequence number, by id.
        case unsequenced
        /// By the keys of an index, then by id; records without a key are left out.
        case key(index: Int)
        /// Only the records without a key in an index, by id.
        case unkeyed(index: Int)
    }

    package var order: Order
    /// The least id or key, included; empty: no bound. Not for `.sequence`.
    package var lower: [UInt8]
    /// Above the greatest id or key; empty: no bound. Not for `.sequence`.
    package var upper: [UInt8]
    /// The least sequence number, included; only for `.sequence`.
    package var lowerSequence: UInt64 = 0
    /// Above the greatest sequence number; 0: no bound; only for `.sequence`.
    package var upperSequence: UInt64 = 0

    package init(_ order: Order = .id, lower: [UInt8] = [], upper: [UInt8] = []) {
        self.order = order
        self.lower = lower
        self.upper = upper
    }

    /// The records with sequence numbers from `lower` up to but not including `upper`; 0: no bound.
    package static func sequences(from lower: UInt64 = 0, to upper: UInt64 = 0) -> PluginRange {
        var range = PluginRange(.sequence)
        range.lowerSequence = lower
        range.upperSequence = upper
        return range
    }

    /// The records whose ids begin with `prefix`.
    package static func prefix(_ prefix: String) -> PluginRange {
        var scalars = Array(prefix.unicodeScalars)
        while scalars.last == "\u{10FFFF}" { scalars.removeLast() }
        // Behind the last one before the surrogates, which are no scalars, comes U+E000.
        if let last = scalars.popLast() { scalars.append(Unicode.Scalar(last.value + 1) ?? "\u{E000}") }
        return PluginRange(lower: Array(prefix.utf8), upper: scalars.flatMap { Array(String($0).utf8) })
    }

    /// The records with keys of an index from `lower` up to but not including `upper`; empty: no bound.
    package static func keys(_ index: Int, from lower: String = "", to upper: String = "") -> PluginRange {
        PluginRange(.key(index: index), lower: Array(lower.utf8), upper: Array(upper.utf8))
    }

    /// The records without a key in an index.
    package static func unkeyed(_ index: Int) -> PluginRange { PluginRange(.unkeyed(index: index)) }

    /// The range as the contract has it, its bytes in `memory`.
    func raw(_ memory: CallMemory) -> UnsafePointer<crudd_range> {
        var raw = crudd_range()
        switch order {
        case .id: raw.order = UInt32(CRUDD_BY_ID)
        case .sequence: raw.order = UInt32(CRUDD_BY_SEQUENCE)
        case .unsequenced:
            raw.order = UInt32(CRUDD_BY_SEQUENCE)
            raw.flags = UInt32(CRUDD_RANGE_UNSEQUENCED)
        case .key(let index):
            raw.order = UInt32(CRUDD_BY_KEY)
            raw.index = UInt32(index)
        case .unkeyed(let index):
            raw.order = UInt32(CRUDD_BY_KEY)
            raw.index = UInt32(index)
            raw.flags = UInt32(CRUDD_RANGE_UNKEYED)
        }
        raw.lower = memory.copy(lower)
        raw.upper = memory.copy(upper)
        raw.lower_sequence = lowerSequence
        raw.upper_sequence = upperSequence
        return UnsafePointer(memory.copy(raw))
    }
}

extension PluginRange: CustomStringConvertible {
    package var description: String {
        var text =
            switch order {
            case .id: "by id"
            case .sequence: "by sequence number"
            case .unsequenced: "without a sequence number"
            case .key(let index): "by key of index \(index)"
            case .unkeyed(let index): "without a key in index \(index)"
            }
        if !lower.isEmpty { text += " from \(Excerpt(lower))" }
        if !upper.isEmpty { text += " up to \(Excerpt(upper))" }
        if lowerSequence != 0 { text += " from \(lowerSequence)" }
        if upperSequence != 0 { text += " up to \(upperSequence)" }
        return text
    }
}
