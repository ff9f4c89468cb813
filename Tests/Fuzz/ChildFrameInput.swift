import CRUDPluginABI

@testable import CRUDPluginHost

/// A frame of a child process without its length, behind a byte that says what the daemon waits for.
enum ChildFrameInput {
    static func parse(_ input: Span<UInt8>) {
        input.withUnsafeBytes { bytes in
            guard let awaited = bytes.first else { return }
            try? read(UnsafeRawBufferPointer(rebasing: bytes.dropFirst()), awaited)
        }
    }

    private static func read(_ frame: UnsafeRawBufferPointer, _ awaited: UInt8) throws(ProtocolViolation) {
        var reader = FrameReader()
        try reader.begin(frame)
        _ = try reader.message(replyTo: awaited == 0 ? nil : 1, isWanted: awaited & 0x80 == 0) {
            reader throws(ProtocolViolation) in
            switch awaited & 0x7F {
            case 1: return try reader.recordsRead(of: 2) { _, record in touch(record.item.buffer) }
            case 2:
                try reader.records { (_, record) throws(ProtocolViolation) in
                    if RecordCodec.isID(record.id.buffer) { _ = touch(record.item.buffer) }
                }
            case 3:
                try reader.object(with: "outcomes") { (reader) throws(ProtocolViolation) in
                    try reader.array { (reader) throws(ProtocolViolation) in _ = try reader.outcome() }
                }
            case 4: _ = try reader.capabilities()
            default: try reader.skip()
            }
            return true
        }
    }

    /// Reads the first and the last byte.
    private static func touch(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.first == bytes.last }
}
