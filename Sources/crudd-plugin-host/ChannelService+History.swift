import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost

/// The methods for expiry and removals.
extension ChannelService {
    func removeExpired(_ request: inout FrameReader) throws(PluginFailure) {
        var call = crudd_expire.sized()
        let target = try parameters(of: &request) { (request, key) throws(ProtocolViolation) in
            switch key {
            case "limit": call.limit = try request.count()
            case "firstSequence": call.first_sequence = try request.integer()
            default: try request.skip()
            }
        }
        guard let removeExpired = table.pointee.remove_expired else {
            throw PluginFailure(status: CRUDD_UNSUPPORTED, message: "the plugin does not remove what has expired")
        }
        let backend = try backend()
        call.collection = target.collection
        var nextExpiry: Int64 = 0
        try emitRecords(Emission(withItems: false, areRemovals: true)) { (emit, context) throws(PluginFailure) in
            call.emit = emit
            call.context = context
            try failure.check(
                storage.clock.write {
                    removeExpired(backend, self.context.begin(now: target.now), &call, &nextExpiry, failure.pointer)
                })
        }
        if nextExpiry != 0 {
            reply.raw(#","nextExpiry":"#, nextExpiry)
        }
    }

    func trimHistory(_ request: inout FrameReader) throws(PluginFailure) {
        var call = crudd_trim.sized()
        let target = try parameters(of: &request) { (request, key) throws(ProtocolViolation) in
            switch key {
            case "before": call.before = Int64(try request.count())
            case "limit": call.limit = try request.count()
            default: try request.skip()
            }
        }
        guard let trimHistory = table.pointee.trim_history else {
            throw PluginFailure(status: CRUDD_UNSUPPORTED, message: "the plugin does not remember what was removed")
        }
        let backend = try backend()
        call.collection = target.collection
        var history = crudd_history.sized()
        try failure.check(
            storage.clock.write {
                trimHistory(backend, context.begin(now: target.now), &call, &history, failure.pointer)
            })
        reply.raw(#""identity":"#, history.identity)
        reply.raw(#","forgotten":"#, history.forgotten)
        reply.raw(#","trimmed":"#, history.trimmed)
    }
}
