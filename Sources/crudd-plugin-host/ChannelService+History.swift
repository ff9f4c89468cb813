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

    func readHistory(_ request: inout FrameReader) throws(PluginFailure) {
        let target = try parameters(of: &request) { (request, _) throws(ProtocolViolation) in try request.skip() }
        guard let readHistory = table.pointee.read_history else {
            throw PluginFailure(status: CRUDD_UNSUPPORTED, message: "the plugin does not number changes itself")
        }
        // What others have written by now counts.
        releaseSnapshot()
        let reader = try reader()
        var history = crudd_history.sized()
        try failure.check(
            readHistory(
                reader.beginRead(), context.begin(now: target.now), target.collection, &history, failure.pointer))
        reply.raw(#""identity":"#, history.identity)
        reply.raw(#","forgotten":"#, history.forgotten)
        reply.raw(#","end":"#, history.end)
        reply.raw(#","next":"#, history.next)
    }

    func takeHistory(_ request: inout FrameReader) throws(PluginFailure) {
        var call = crudd_taken_history.sized()
        var removals: [crudd_record] = []
        let target = try parameters(of: &request) { (request, key) throws(ProtocolViolation) in
            switch key {
            case "identity": call.identity = try request.integer()
            case "forgotten": call.forgotten = try request.integer()
            case "lastSequence": call.last_sequence = try request.integer()
            case "removals":
                try request.array { (request) throws(ProtocolViolation) in removals.append(try request.removal()) }
            default: try request.skip()
            }
        }
        guard let takeHistory = table.pointee.take_history else {
            throw PluginFailure(
                status: CRUDD_UNSUPPORTED, message: "the plugin does not continue the histories of other collections")
        }
        let backend = try backend()
        call.collection = target.collection
        call.removal_size = MemoryLayout<crudd_record>.stride
        call.count = removals.count
        try removals.withUnsafeBufferPointer { removals throws(PluginFailure) in
            call.removals = removals.baseAddress
            try failure.check(
                storage.clock.write {
                    takeHistory(backend, context.begin(now: target.now), &call, failure.pointer)
                })
        }
    }
}

extension FrameReader {
    /// Takes the id and the number of a removal; the bytes are there as long as the frame.
    fileprivate mutating func removal() throws(ProtocolViolation) -> crudd_record {
        var record = crudd_record.sized()
        try object { (reader, key) throws(ProtocolViolation) in
            switch key {
            case "id": record.id = crudd_bytes(try reader.bytes())
            case "sequence": record.sequence = try reader.integer()
            default: try reader.skip()
            }
        }
        return record
    }
}
