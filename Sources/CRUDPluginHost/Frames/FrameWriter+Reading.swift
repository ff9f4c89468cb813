import CRUDPluginABI

extension FrameWriter {
    /// Writes the parameters of `read`.
    mutating func read(
        _ ids: some Sequence<crudd_bytes>, in collection: Int, withItems: Bool, toWrite: Bool = false, now: Int64
    ) {
        raw(#""collection":"#, collection)
        raw(#","ids":"#)
        array(ids) { $0.bytes($1) }
        raw(#","items":"#, withItems)
        if toWrite { raw(#","toWrite":true"#) }
        raw(#","now":"#, now)
    }
}
