@testable import CRUDEventLoop

/// A stream handler that records its calls and runs the closures of the test.
final class Recorder: StreamHandler {
    enum Call: Equatable {
        case received(String)
        case reachedEnd
        /// Of a paused stream: all of its output has been written.
        case outputDrained
        case closed
    }

    private(set) var calls: [Call] = []
    /// Everything that was consumed.
    private(set) var bytes: [UInt8] = []
    var isClosed: Bool { calls.last == .closed }

    /// Returns how many of these bytes are consumed; nil: all.
    var onReceived: ((Recorder, [UInt8], Stream) -> Int)?
    var onEnd: ((Stream) -> Void)?
    var onDrained: ((Stream) -> Void)?
    var onClosed: ((Stream) -> Void)?
    /// Whether calls of `received` are recorded with their text.
    var recordsText = true

    var text: String { String(decoding: bytes, as: UTF8.self) }

    func received(_ bytes: Span<UInt8>, from stream: Stream) -> Int {
        let bytes = bytes.withUnsafeBufferPointer { Array($0) }
        if recordsText { calls.append(.received(String(decoding: bytes, as: UTF8.self))) }
        let consumed = onReceived?(self, bytes, stream) ?? bytes.count
        self.bytes += bytes[..<consumed]
        return consumed
    }

    func reachedEnd(of stream: Stream) {
        calls.append(.reachedEnd)
        onEnd?(stream)
    }

    func outputWritten(to stream: Stream) {
        guard stream.isPaused, stream.pendingOutputBytes == 0 else { return }
        calls.append(.outputDrained)
        onDrained?(stream)
    }

    func closed(_ stream: Stream) {
        calls.append(.closed)
        onClosed?(stream)
    }
}
