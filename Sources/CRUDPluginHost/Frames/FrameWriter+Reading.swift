import CRUDPluginABI

/// Parts of `params` that the methods which read have in common.
extension FrameWriter {
    /// Names a collection by its number, as the first member.
    mutating func collection(_ number: Int) {
        raw(#""collection":"#)
        integer(number)
    }

    /// Says what time it is, as the last member: milliseconds since 1970-01-01 UTC.
    mutating func now(_ now: Int64) {
        raw(#","now":"#)
        integer(now)
    }

    /// Writes the parameters of `read`.
    mutating func read(_ ids: some Sequence<crudd_bytes>, in collection: Int, withItems: Bool, now: Int64) {
        self.collection(collection)
        raw(#","ids":["#)
        var isFirst = true
        for id in ids {
            if !isFirst { raw(",") }
            isFirst = false
            bytes(id)
        }
        raw(withItems ? #"],"items":true"# : #"],"items":false"#)
        self.now(now)
    }
}
