import CRUDPluginABI

extension FrameWriter {
    /// Writes the parameters of `read`.
    mutating func read(_ ids: some Sequence<crudd_bytes>, in collection: Int, withItems: Bool, now: Int64) {
        raw(#""collection":"#, collection)
        raw(#","ids":"#)
        array(ids) { $0.bytes($1) }
        raw(#","items":"#, withItems)
        raw(#","now":"#, now)
    }
}
