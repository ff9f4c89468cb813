import CRUDModel
import CRUDPluginABI
import CRUDPluginHost

/// What is done with the records that the plugin emits in a call.
struct Emission {
    /// Whether the position in the request tells records apart, rather than their ids.
    var isByIndex = false
    var withItems = true
    /// Whether they have been removed: they have an id and a sequence number, and the daemon is told of all of them.
    var areRemovals = false
    /// For how many bytes of items and revisions the daemon has room; below 0: no other record is wanted.
    var bytesLeft = Int.max
    /// The longest item that may be sent.
    var maximumItemBytes = 0
    var isFirst = true
    /// Why a record cannot be sent.
    var failure: PluginFailure?

    /// The longest item that is sure to fit a frame: behind as many records as a frame may hold before another one is
    /// begun, with its id, its revision and its head.
    static func maximumItemBytes(inFramesOf frameBytes: Int) -> Int {
        max(0, frameBytes - ChannelService.partBytes - Naming.maximumIDBytes - Naming.maximumRevisionBytes - 1024)
    }
}

extension ChannelService {
    /// Has the plugin emit records into the reply, which is sent in frames of a modest size.
    ///
    /// - Parameter call: makes the call, with ``emit`` and its context.
    func emitRecords(
        _ emission: Emission, _ call: (crudd_emit, UnsafeMutableRawPointer) throws(PluginFailure) -> Void
    ) throws(PluginFailure) {
        state.emission = emission
        state.emission.maximumItemBytes = storage.maximumItemBytes
        reply.raw(#""records":["#)
        try call(Self.emit, Unmanaged.passUnretained(self).toOpaque())
        if let failure = state.emission.failure { throw failure }
        reply.raw("]")
    }

    private static let emit: crudd_emit = { context, index, record in
        guard let context, let record else { return 1 }
        // The context is the service that makes the call.
        let service = Unmanaged<ChannelService>.fromOpaque(context).takeUnretainedValue()
        var read = crudd_record.read(record)
        if service.state.emission.areRemovals { read.flags |= UInt32(CRUDD_RECORD_REMOVED) }
        return service.emit(read, at: index) ? 0 : 1
    }

    private func emit(_ record: crudd_record, at index: Int) -> Bool {
        if reply.count >= Self.partBytes {
            if !state.emission.areRemovals, isInterrupted { return false }
            reply.raw("]")
            sendPart()
            reply.raw(#""records":["#)
            state.emission.isFirst = true
        }
        guard record.isRemoved || RecordCodec.isRevision(record.revision.buffer) else {
            return refuse("the plugin emits a revision that is not 1 to 64 bytes of printable ASCII")
        }
        guard !state.emission.isByIndex || !record.isRemoved else {
            return refuse("the plugin emits a record that was removed")
        }
        guard state.emission.isByIndex || RecordCodec.isID(record.id.buffer) else {
            return refuse("the plugin emits an invalid id")
        }
        guard record.item.size <= state.emission.maximumItemBytes || !state.emission.withItems else {
            // The daemon takes no such item from a client: somebody else has stored it.
            return refuse(
                "record \(String(decoding: record.id.buffer, as: UTF8.self)) has \(record.item.size) bytes, of which "
                    + "at most \(state.emission.maximumItemBytes) fit a frame")
        }
        if !state.emission.isFirst { reply.raw(",") }
        state.emission.isFirst = false
        if state.emission.isByIndex {
            reply.record(record, at: index, withItem: state.emission.withItems)
        } else {
            reply.record(record, withItem: state.emission.withItems)
        }
        state.emission.bytesLeft -= record.item.size + record.revision.size
        return state.emission.bytesLeft >= 0
    }

    private func refuse(_ message: String) -> Bool {
        state.emission.failure = PluginFailure(status: CRUDD_CORRUPT, message: message)
        return false
    }
}
