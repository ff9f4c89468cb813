/// Records that a reply leaves out, because their stored bytes cannot be decoded.
enum CorruptRecords {
    /// Names them on standard error, for results that have no place for them.
    ///
    /// - Parameter ids: as JSON text.
    static func note(_ ids: [ArraySlice<UInt8>]) {
        for id in ids {
            let id = String(decoding: id, as: UTF8.self).withVisibleControls
            StandardError.write("crudctl: corrupt: the record \(id) cannot be decoded and is left out\n")
        }
    }
}
