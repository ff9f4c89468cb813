@testable import CRUDEventLoop

/// A stream handler that notes its calls, and does in them what the test says.
final class Recorder: StreamHandler {
    enum Call: Equatable {
        case received(String)
        case reachedEnd
        case outputDrained
        case closed
    }

    private(set) var calls: [Call] = []
    /// Everything that was consumed.
    private(set) var bytes: [UInt8] = []
    var isClosed: Bool { calls.last == .closed }

    /// How many of these bytes are consumed; all, if the test does not say.
    var onReceived: ((Recorder, [UInt8], Stream) -> Int)?
    var onEnd: ((Stream) -> Void)?
    var onDrained: ((Stream) -> Void)?
    var onClosed: ((Stream) -> Void)?
    /// Whether calls of `received` are noted with their text.
    var notesText = true

    var text: String { String(decoding: bytes, as: UTF8.self) }

    func received(_ bytes: Span<UInt8>, from stream: Stream) -> Int {
        let bytes = bytes.withUnsafeBufferPointer { Array($0) }
        if notesText { calls.append(.received(String(decoding: bytes, as: UTF8.self))) }
        let consumed = onReceived?(self, bytes, stream) ?? bytes.count
        self.bytes += bytes[..<consumed]
        return consumed
    }

    func reachedEnd(of stream: Stream) {
        calls.append(.reachedEnd)
        onEnd?(stream)
    }

    func outputDrained(from stream: Stream) {
        calls.append(.outputDrained)
        onDrained?(stream)
    }

    func closed(_ stream: Stream) {
        calls.append(.closed)
        onClosed?(stream)
    }
}
