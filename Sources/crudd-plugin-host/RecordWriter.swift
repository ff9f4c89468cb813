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
    private var isFirst = true
    private var refusal: ChannelService.Refusal?
    private var scanner = JSONScanner()

    init(_ service: ChannelService, isJSON: Bool, withItems: Bool, names name: Name) {
        self.service = service
        self.isJSON = isJSON
        self.withItems = withItems
        self.name = name
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
            refusal = ChannelService.Refusal(
                status: CRUDD_CORRUPT, message: "the plugin emits a revision that is not at most 64 bytes of ASCII")
            return false
        }
        service.reply.raw(isFirst ? "{" : ",{")
        isFirst = false
        switch name {
        case .index:
            service.reply.raw(#""index":"#)
            service.reply.integer(index)
        case .id:
            guard Naming.fault(id.bindMemory(to: UInt8.self).span, maximum: Naming.maximumIDBytes) == nil else {
                refusal = ChannelService.Refusal(
                    status: CRUDD_CORRUPT, message: "the plugin emits an id that is none")
                return false
            }
            service.reply.raw(#""id":"#)
            service.reply.string(id)
        }
        service.reply.raw(#","revision":"#)
        service.reply.string(revision)
        // Bytes that are no JSON although they ought to be are the daemon's to judge.
        if withItems { service.reply.item(item, isJSON: isJSON && isText(item)) }
        service.reply.raw("}")
        return true
    }

    private func isText(_ item: UnsafeRawBufferPointer) -> Bool {
        let text = item.bindMemory(to: UInt8.self).span
        scanner.reset()
        guard (try? scanner.value(text)) != nil else { return false }
        return scanner.isAtEnd(text)
    }
}
