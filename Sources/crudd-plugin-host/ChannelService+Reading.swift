import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost

/// The methods that read.
extension ChannelService {
    func read(_ request: inout FrameReader) throws(PluginFailure) {
        var call = crudd_read.sized()
        var maximumBytes = Int.max
        state.ids.removeAll(keepingCapacity: true)
        let target = try parameters(of: &request) { (request, key) throws(ProtocolViolation) in
            switch key {
            case "ids":
                try request.array { (request) throws(ProtocolViolation) in
                    state.ids.append(crudd_bytes(try request.bytes()))
                }
            case "items": if try !request.bool() { call.flags |= UInt32(CRUDD_READ_WITHOUT_ITEMS) }
            case "toWrite": if try request.bool() { call.flags |= UInt32(CRUDD_READ_TO_WRITE) }
            case "maxBytes": maximumBytes = try request.count()
            default: try request.skip()
            }
        }
        let reader = try reader()
        call.collection = target.collection
        let emission = Emission(
            isByIndex: true, withItems: Int(call.flags) & CRUDD_READ_WITHOUT_ITEMS == 0, bytesLeft: maximumBytes)
        try emitRecords(emission) { (emit, emitContext) throws(PluginFailure) in
            call.emit = emit
            call.context = emitContext
            try failure.check(
                state.ids.withUnsafeBufferPointer { ids in
                    call.ids = ids.baseAddress
                    call.count = ids.count
                    return table.pointee.read(
                        reader.beginRead(), context.begin(now: target.now), &call, failure.pointer)
                })
        }
    }

    func scan(_ request: inout FrameReader) throws(PluginFailure) {
        var range = crudd_range.sized()
        var call = crudd_scan.sized()
        let target = try parameters(of: &request) { (request, key) throws(ProtocolViolation) in
            switch key {
            case "afterKey": call.after_key = crudd_bytes(try request.bytes())
            case "afterId": call.after_id = crudd_bytes(try request.bytes())
            case "reverse": if try request.bool() { call.flags |= UInt32(CRUDD_SCAN_REVERSE) }
            case "limit": call.limit = try request.count()
            case "items": if try !request.bool() { call.flags |= UInt32(CRUDD_SCAN_WITHOUT_ITEMS) }
            default: try request.member(key, of: &range)
            }
        }
        let reader = try reader()
        call.collection = target.collection
        let emission = Emission(withItems: Int(call.flags) & CRUDD_SCAN_WITHOUT_ITEMS == 0)
        try emitRecords(emission) { (emit, emitContext) throws(PluginFailure) in
            call.emit = emit
            call.context = emitContext
            try failure.check(
                withUnsafePointer(to: range) { range in
                    call.range = range
                    return table.pointee.scan(
                        reader.beginRead(), context.begin(now: target.now), &call, failure.pointer)
                })
        }
    }

    func count(_ request: inout FrameReader) throws(PluginFailure) {
        var range = crudd_range.sized()
        var call = crudd_count.sized()
        let target = try parameters(of: &request) { (request, key) throws(ProtocolViolation) in
            switch key {
            case "limit": call.limit = try request.integer()
            default: try request.member(key, of: &range)
            }
        }
        let reader = try reader()
        call.collection = target.collection
        var count: UInt64 = 0
        try failure.check(
            withUnsafePointer(to: range) { range in
                call.range = range
                return table.pointee.count(
                    reader.beginRead(), context.begin(now: target.now), &call, &count, failure.pointer)
            })
        reply.raw(#""count":"#, count)
    }
}
