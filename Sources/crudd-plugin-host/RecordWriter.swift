import CRUDJSON
import CRUDModel
import CRUDPluginABI
import CRUDPluginHost

/// Writes the records that the plugin emits into the reply, which goes out in frames of a modest size.
final class RecordWriter {
    /// What tells a record from the others.
    enum Name {
        case index, id
    }

    private let service: ChannelService
    private let isJSON: Bool
    private let withItems: Bool
    private let name: Name
    private let maximumItemBytes: Int
    private var isFirst = true
    private var refusal: ChannelService.Refusal?
    private var scanner = JSONScanner()

    init(_ service: ChannelService, isJSON: Bool, withItems: Bool, names name: Name) {
        self.service = service
        self.isJSON = isJSON
        self.withItems = withItems
        self.name = name
        maximumItemBytes = service.storage.maximumItemBytes
    }

    /// The longest item that is sure to fit a frame: behind as many records as a frame may hold before another one is
    /// begun, with its id and revision, and in base64, which makes four bytes of three.
    static func maximumItemBytes(inFramesOf frameBytes: Int) -> Int {
        let room = frameBytes - ChannelService.frameBytes - 6 * Naming.maximumIDBytes - 1024
        return max(0, room) / 4 * 3
    }

    /// Begins the result.
    func begin() {
        service.reply.raw(#""records":["#)
    }

    static let emit: crudd_emit = { context, index, id, item, revision in
        guard let context else { return 1 }
        // `context` is the writer, which outlives the call of the plugin.
        let writer = Unmanaged<RecordWriter>.fromOpaque(context).takeUnretainedValue()
        return writer.write(index, id.buffer, item.buffer, revision.buffer) ? 0 : 1
    }

    /// Whether the daemon has lost interest.
    static let interrupt: crudd_interrupt = { context in
        guard let context else { return 0 }
        // As above.
        return Unmanaged<RecordWriter>.fromOpaque(context).takeUnretainedValue().service.isInterrupted ? 1 : 0
    }

    /// Completes the result.
    func end() throws(ChannelService.Refusal) {
        if let refusal { throw refusal }
        service.reply.raw("]")
    }

    private func write(
        _ index: Int, _ id: UnsafeRawBufferPointer, _ item: UnsafeRawBufferPointer, _ revision: UnsafeRawBufferPointer
    ) -> Bool {
        if service.reply.count >= ChannelService.frameBytes {
            if service.isInterrupted { return false }
            service.sendPart(closing: "]")
            begin()
            isFirst = true
        }
        guard revision.count <= Naming.maximumRevisionBytes, revision.allSatisfy({ $0 < 0x80 }) else {
            return refuse("the plugin emits a revision that is not at most 64 bytes of ASCII")
        }
        service.reply.raw(isFirst ? "{" : ",{")
        isFirst = false
        switch name {
        case .index:
            service.reply.raw(#""index":"#)
            service.reply.integer(index)
        case .id:
            guard Naming.fault(id.bindMemory(to: UInt8.self).span, maximum: Naming.maximumIDBytes) == nil else {
                return refuse("the plugin emits an id that is none")
            }
            service.reply.raw(#""id":"#)
            service.reply.string(id)
        }
        service.reply.raw(#","revision":"#)
        service.reply.string(revision)
        if withItems {
            // The daemon takes no such item from a client: somebody else has put it there.
            guard item.count <= maximumItemBytes else {
                return refuse(
                    "record \(String(decoding: id, as: UTF8.self)) has \(item.count) bytes, of which at most "
                        + "\(maximumItemBytes) fit a frame")
            }
            // Bytes that are no JSON although they ought to be are the daemon's to judge.
            service.reply.item(item, mayBeJSON: isJSON, &scanner)
        }
        service.reply.raw("}")
        return true
    }

    private func refuse(_ message: String) -> Bool {
        refusal = ChannelService.Refusal(status: CRUDD_CORRUPT, message: message)
        return false
    }
}
