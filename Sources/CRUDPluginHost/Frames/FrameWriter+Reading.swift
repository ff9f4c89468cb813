import CRUDPluginABI

extension FrameWriter {
    /// Writes the parameters of `read`.
    ///
    /// - Parameter maximumBytes: how many bytes of items and revisions there is room for; nil: for any number.
    mutating func read(
        _ ids: some Sequence<crudd_bytes>, in collection: Int, withItems: Bool, toWrite: Bool = false,
        maximumBytes: Int? = nil, now: Int64
    ) {
        raw(#""collection":"#, collection)
        raw(#","ids":"#)
        array(ids) { $0.bytes($1) }
        raw(#","items":"#, withItems)
        if toWrite { raw(#","toWrite":true"#) }
        if let maximumBytes { raw(#","maxBytes":"#, maximumBytes) }
        raw(#","now":"#, now)
    }
}
