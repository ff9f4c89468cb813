import CRUDPluginABI
import CRUDPluginHost
import CRUDStorage

/// The methods that read.
extension ChannelService {
    func read(_ request: inout FrameReader) throws(PluginFailure) {
        var number = 0
        var call = crudd_read.sized()
        var now: Int64 = 0
        state.ids.removeAll(keepingCapacity: true)
        try request.parameters { (request, key) throws(ProtocolViolation) in
            switch key {
            case "collection": number = try request.count()
            case "ids":
                try request.array { (request) throws(ProtocolViolation) in
                    state.ids.append(crudd_bytes(try request.bytes()))
                }
            case "items": call.flags = try request.bool() ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)
            case "now": now = Int64(try request.count())
            default: try request.skip()
            }
        }
        let reader = try reader()
        call.collection = try collection(number).handle
        let emission = Emission(isByIndex: true, withItems: call.flags == 0)
        try emitRecords(emission) { (emit, emitContext) throws(PluginFailure) in
            call.emit = emit
            call.context = emitContext
            try failure.check(
                state.ids.withUnsafeBufferPointer { ids in
                    call.ids = ids.baseAddress
                    call.count = ids.count
                    return table.pointee.read(reader.beginRead(), context.begin(now: now), &call, failure.pointer)
                })
        }
    }

    func scan(_ request: inout FrameReader) throws(PluginFailure) {
        var number = 0
        var range = crudd_range.sized()
        var call = crudd_scan.sized()
        var now: Int64 = 0
        try request.parameters { (request, key) throws(ProtocolViolation) in
            switch key {
            case "collection": number = try request.count()
            case "afterKey": call.after_key = crudd_bytes(try request.bytes())
            case "afterId": call.after_id = crudd_bytes(try request.bytes())
            case "reverse": if try request.bool() { call.flags |= UInt32(CRUDD_SCAN_REVERSE) }
            case "limit": call.limit = try request.count()
            case "items": if try !request.bool() { call.flags |= UInt32(CRUDD_SCAN_WITHOUT_ITEMS) }
            case "now": now = Int64(try request.count())
            default: try request.member(key, of: &range)
            }
        }
        let reader = try reader()
        call.collection = try collection(number).handle
        let emission = Emission(withItems: Int(call.flags) & CRUDD_SCAN_WITHOUT_ITEMS == 0)
        try emitRecords(emission) { (emit, emitContext) throws(PluginFailure) in
            call.emit = emit
            call.context = emitContext
            try failure.check(
                withUnsafePointer(to: range) { range in
                    call.range = range
                    return table.pointee.scan(reader.beginRead(), context.begin(now: now), &call, failure.pointer)
                })
        }
    }

    func count(_ request: inout FrameReader) throws(PluginFailure) {
        var number = 0
        var range = crudd_range.sized()
        var call = crudd_count.sized()
        var now: Int64 = 0
        try request.parameters { (request, key) throws(ProtocolViolation) in
            switch key {
            case "collection": number = try request.count()
            case "limit": call.limit = try request.integer()
            case "now": now = Int64(try request.count())
            default: try request.member(key, of: &range)
            }
        }
        let reader = try reader()
        call.collection = try collection(number).handle
        var count: UInt64 = 0
        try failure.check(
            withUnsafePointer(to: range) { range in
                call.range = range
                return table.pointee.count(
                    reader.beginRead(), context.begin(now: now), &call, &count, failure.pointer)
            })
        reply.raw(#""count":"#, count)
    }
}
