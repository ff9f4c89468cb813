package import CRUDModel
import CRUDPluginABI

/// Receives the records that a walk or a query finds.
package protocol FoundRecordSink: AnyObject {
    /// - Parameters:
    ///   - item: the stored bytes; empty if items were not asked for. Gone, as the others, when the call returns.
    /// - Returns: whether further records are wanted.
    func receive(id: UnsafeRawBufferPointer, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) -> Bool
}

/// A query for a plugin to answer.
package struct PluginQuery: Sendable {
    /// CQL2 JSON; empty: all.
    package var filter: [UInt8] = []
    /// How ids begin.
    package var prefix: [UInt8] = []
    /// As in the protocol; empty: by id.
    package var sort: [UInt8] = []
    /// A place in that order as JSON; empty: from the start.
    package var after: [UInt8] = []
    package var limit = 0
    package var withItems = true
    package var wantsPlan = false

    package init() {}
}

/// What became of a query that a plugin was asked.
package enum PluginAnswer {
    /// All that was asked for has been received.
    case complete
    /// The plugin does not evaluate this; nothing was received.
    case refused
    /// It took too long, or nobody waits for it. What was received is the beginning of the answer.
    case interrupted
}

extension BackendReader {
    /// Walks records by id, ascending by byte.
    ///
    /// - Parameters:
    ///   - after: only ids greater than this; empty: from the start.
    ///   - prefix: only ids that begin with this.
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    package func scan(
        _ collection: BackendCollection, after: [UInt8], prefix: [UInt8], withItems: Bool,
        into sink: any FoundRecordSink
    ) throws(CRUDError) {
        guard let handle = collection.handle else { return }
        renew()
        let receiver = Receiver(sink)
        let status = after.withUnsafeBufferPointer { after in
            prefix.withUnsafeBufferPointer { prefix in
                var request = crudd_scan()
                request.struct_size = UInt32(MemoryLayout<crudd_scan>.size)
                request.flags = withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)
                request.collection = handle
                request.after = crudd_bytes(after)
                request.prefix = crudd_bytes(prefix)
                request.emit = Receiver.emit
                request.context = receiver.context
                return table.pointee.scan(reader, &request, failure.pointer)
            }
        }
        withExtendedLifetime(receiver) {}
        if Int(status) != CRUDD_OK { throw fail(status, "scan") }
    }

    /// Has the plugin answer a query, if it can.
    ///
    /// - Parameters:
    ///   - interrupt: asked now and then: whether to stop.
    ///   - plan: what the plugin says of how it did it.
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    package func query(
        _ query: PluginQuery, in collection: BackendCollection, into sink: any FoundRecordSink,
        interrupt: @escaping () -> Bool, plan: inout PluginPlan
    ) throws(CRUDError) -> PluginAnswer {
        guard let handle = collection.handle else { return .complete }
        guard let call = table.pointee.query, canQuery else { return .refused }
        renew()
        let receiver = Receiver(sink, interrupt: interrupt)
        var rawPlan = crudd_plan()
        rawPlan.struct_size = UInt32(MemoryLayout<crudd_plan>.size)
        let status = query.withRaw { request in
            request.collection = handle
            request.emit = Receiver.emit
            request.interrupt = Receiver.interrupt
            request.context = receiver.context
            return withUnsafeMutablePointer(to: &rawPlan) { rawPlan in
                if query.wantsPlan { request.plan = rawPlan }
                return call(reader, &request, failure.pointer)
            }
        }
        plan = PluginPlan(rawPlan)
        return try answer(status, receiver, "query")
    }

    /// Has the plugin count the records that match a filter, if it can.
    ///
    /// - Parameters:
    ///   - filter: CQL2 JSON.
    ///   - interrupt: asked now and then: whether to stop.
    /// - Returns: nil if the plugin does not evaluate this filter, or was interrupted.
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    package func count(
        _ collection: BackendCollection, filter: [UInt8], prefix: [UInt8], interrupt: @escaping () -> Bool
    ) throws(CRUDError) -> Int? {
        guard let handle = collection.handle else { return 0 }
        guard filter.isEmpty || canQuery else { return nil }
        renew()
        let receiver = Receiver(nil, interrupt: interrupt)
        var count: UInt64 = 0
        let status = filter.withUnsafeBufferPointer { filter in
            prefix.withUnsafeBufferPointer { prefix in
                var request = crudd_count()
                request.struct_size = UInt32(MemoryLayout<crudd_count>.size)
                request.collection = handle
                request.prefix = crudd_bytes(prefix)
                request.filter = crudd_bytes(filter)
                request.interrupt = Receiver.interrupt
                request.context = receiver.context
                return table.pointee.count(reader, &request, &count, failure.pointer)
            }
        }
        return switch try answer(status, receiver, "count") {
        case .complete: Int(clamping: count)
        case .refused, .interrupted: nil
        }
    }

    private func answer(_ status: crudd_status, _ receiver: Receiver, _ call: String) throws(CRUDError) -> PluginAnswer
    {
        switch Int(status) {
        case CRUDD_OK: return .complete
        case CRUDD_UNSUPPORTED where !receiver.hasReceived:
            _ = failure.take(status: status)
            return .refused
        case CRUDD_UNAVAILABLE where receiver.hasInterrupted:
            _ = failure.take(status: status)
            return .interrupted
        default: throw fail(status, call)
        }
    }
}

/// How a plugin has answered a query.
package struct PluginPlan {
    /// The property path whose index served; nil: none did.
    package var index: String?
    /// How many records were looked at.
    package var scanned = 0

    package init() {}

    init(_ plan: crudd_plan) {
        let text = withUnsafeBytes(of: plan.index) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        index = text.isEmpty ? nil : text
        scanned = Int(clamping: plan.scanned)
    }
}

/// What the plugin's calls back of one search reach.
private final class Receiver {
    private let sink: (any FoundRecordSink)?
    private let interrupt: () -> Bool
    private(set) var hasReceived = false
    private(set) var hasInterrupted = false

    init(_ sink: (any FoundRecordSink)?, interrupt: @escaping () -> Bool = { false }) {
        self.sink = sink
        self.interrupt = interrupt
    }

    /// What the plugin hands back; the receiver must outlive the call.
    var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    static let emit: crudd_emit = { context, _, id, item, revision in
        guard let receiver = Receiver.of(context) else { return 1 }
        receiver.hasReceived = true
        return receiver.sink?.receive(id: id.buffer, item: item.buffer, revision: revision.buffer) == true ? 0 : 1
    }

    static let interrupt: crudd_interrupt = { context in
        guard let receiver = Receiver.of(context), !receiver.hasInterrupted else { return 1 }
        receiver.hasInterrupted = receiver.interrupt()
        return receiver.hasInterrupted ? 1 : 0
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> Receiver? {
        // `context` is the receiver of the call that is being made.
        context.map { Unmanaged<Receiver>.fromOpaque($0).takeUnretainedValue() }
    }
}

extension PluginQuery {
    /// The query as the plugin sees it, but for the collection and the calls back.
    fileprivate func withRaw(_ body: (inout crudd_query) -> crudd_status) -> crudd_status {
        filter.withUnsafeBufferPointer { filter in
            prefix.withUnsafeBufferPointer { prefix in
                sort.withUnsafeBufferPointer { sort in
                    after.withUnsafeBufferPointer { after in
                        var request = crudd_query()
                        request.struct_size = UInt32(MemoryLayout<crudd_query>.size)
                        request.flags = withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)
                        request.filter = crudd_bytes(filter)
                        request.prefix = crudd_bytes(prefix)
                        request.sort = crudd_bytes(sort)
                        request.after = crudd_bytes(after)
                        request.limit = limit
                        return body(&request)
                    }
                }
            }
        }
    }
}
