import CRUDJSON
import CRUDModel
import CRUDWire

/// How large a collection is.
struct CollectionSize {
    private let description: ResultObject

    init(of name: String, _ client: Client) async throws {
        var params = JSONWriter()
        params.object { params in
            params.member("collection", name)
            params.member("sizes", true)
        }
        guard let description = ResultObject(try await client.call("collection.describe", json: params.bytes)) else {
            throw CRUDError(.internalError, "the daemon's reply does not describe the collection")
        }
        self.description = description
    }

    /// `{"collections": […]}` as JSON text.
    ///
    /// - Parameter asTable: bytes are written for people.
    static func list(_ sizes: [CollectionSize], asTable: Bool) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { result in
            result.member("collections", objects: sizes) { $0.write(to: &$1, asTable: asTable) }
        }
        return writer.bytes
    }

    private func write(to object: inout JSONWriter, asTable: Bool) {
        object.member("name", description.string("name") ?? "")
        object.member("backend", description.string("backend") ?? "")
        object.member("format", description.string("format") ?? "")
        // One that is closed has no count.
        if let count = description.integer("count") { object.member("records", count) }
        guard let bytes = description.integer("bytes") else { return }
        let isEstimate = description.bool("estimated") == true
        guard asTable else {
            object.member("bytes", bytes)
            return object.member("estimated", isEstimate)
        }
        object.member("bytes", (isEstimate ? "~" : "") + Amount.bytes(Double(bytes)))
    }
}
