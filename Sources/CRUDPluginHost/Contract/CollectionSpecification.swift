package import CRUDPluginABI

extension crudd_collection_spec {
    /// Describes a collection to a plugin.
    ///
    /// - Parameters:
    ///   - name: in UTF-8.
    ///   - indexes: the paths of its indexes.
    ///   - flags: `CRUDD_OPEN_…`
    ///   - body: receives the description, which is valid until it returns.
    package static func with<Result>(
        name: [UInt8], format: String, indexes: [String], flags: UInt32, _ body: (UnsafePointer<Self>) -> Result
    ) -> Result {
        // All texts one after the other, so that their addresses hold together.
        let texts = [name, Array(format.utf8)] + indexes.map { Array($0.utf8) }
        return texts.flatMap(\.self).withUnsafeBufferPointer { bytes in
            var end = 0
            let places = texts.map { text in
                defer { end += text.count }
                return crudd_bytes(UnsafeBufferPointer(rebasing: bytes[end..<end + text.count]))
            }
            return places.withUnsafeBufferPointer { places in
                var specification = sized()
                specification.flags = flags
                specification.name = places[0]
                specification.format = places[1]
                specification.indexes = UnsafeBufferPointer(rebasing: places[2...]).baseAddress
                specification.index_count = indexes.count
                return body(&specification)
            }
        }
    }
}
