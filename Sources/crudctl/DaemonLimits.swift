import CRUDJSON
import CRUDModel
import CRUDWire

/// Limits of the daemon, as far as a load has to keep to them.
struct DaemonLimits {
    let frameBytes: Int
    let itemBytes: Int
    let jsonDepth: Int
    /// The most operations of a `record.batch` whose reply is certainly no longer than a frame.
    let batchOperations: Int

    /// The most bytes of an operation's outcome.
    private static let outcomeBytes = 1 << 10

    /// Asks the daemon.
    init(of client: Client) async throws {
        var params = JSONWriter()
        params.object { $0.member("client", Client.name) }
        let limits = ResultObject(try await client.call("session.hello", json: params.bytes))?.object("limits")
        frameBytes = limits?.integer("frame_bytes") ?? DefaultLimits.frameBytes
        itemBytes = limits?.integer("item_bytes") ?? DefaultLimits.itemBytes
        jsonDepth = limits?.integer("json_depth") ?? DefaultLimits.jsonDepth
        batchOperations = min(limits?.integer("batch") ?? DefaultLimits.batch, frameBytes / Self.outcomeBytes)
    }

    /// Refuses an item that the daemon would refuse.
    func check(_ item: JSONSlice) throws(CRUDError) {
        try check(item.count, itemBytes, "item_bytes", "the item has \(item.count) bytes")
        try check(item.depth, jsonDepth, "json_depth", "the item nests \(item.depth) deep")
    }

    private func check(_ value: Int, _ maximum: Int, _ limit: String, _ what: String) throws(CRUDError) {
        guard value > maximum else { return }
        throw CRUDError(
            .limitExceeded, "\(what), more than the \(maximum) of \(limit)",
            details: CRUDError.Details(limit: limit, maximum: maximum))
    }
}
