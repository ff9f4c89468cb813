package import CRUDPluginABI

/// Which records are scanned or counted, as members of `params`: `"order":"key","index":0,"lower":4,"upper":0`.
extension FrameWriter {
    /// Writes a range, a comma in front.
    mutating func range(_ range: crudd_range) {
        switch Int(range.order) {
        case CRUDD_BY_SEQUENCE where Int(range.flags) & CRUDD_RANGE_UNSEQUENCED != 0:
            raw(#","order":"sequence","unsequenced":true"#)
        case CRUDD_BY_SEQUENCE:
            raw(#","order":"sequence","lowerSequence":"#, range.lower_sequence)
            raw(#","upperSequence":"#, range.upper_sequence)
            return
        case CRUDD_BY_KEY:
            raw(#","order":"key","index":"#, range.index)
            if Int(range.flags) & CRUDD_RANGE_UNKEYED != 0 { raw(#","unkeyed":true"#) }
        default:
            raw(#","order":"id""#)
        }
        raw(#","lower":"#, bytes: range.lower)
        raw(#","upper":"#, bytes: range.upper)
    }
}

extension FrameReader {
    /// Takes a member of `params` that may belong to a range, or passes over it.
    package mutating func member(_ key: FrameString, of range: inout crudd_range) throws(ProtocolViolation) {
        switch key {
        case "order": range.order = UInt32(try order())
        case "index": range.index = UInt32(clamping: try integer())
        case "unkeyed": if try bool() { range.flags |= UInt32(CRUDD_RANGE_UNKEYED) }
        case "unsequenced": if try bool() { range.flags |= UInt32(CRUDD_RANGE_UNSEQUENCED) }
        case "lower": range.lower = crudd_bytes(try bytes())
        case "upper": range.upper = crudd_bytes(try bytes())
        case "lowerSequence": range.lower_sequence = try integer()
        case "upperSequence": range.upper_sequence = try integer()
        default: try skip()
        }
    }

    private mutating func order() throws(ProtocolViolation) -> Int {
        switch try string() {
        case "id": return CRUDD_BY_ID
        case "key": return CRUDD_BY_KEY
        case "sequence": return CRUDD_BY_SEQUENCE
        case let other: throw ProtocolViolation("an unknown order, \(other.text)")
        }
    }
}
