import CRUDJSON

/// Text for standard output, which is written in pieces: what a long result becomes is never in memory as a whole.
final class OutputBuffer {
    /// From this length on the text is written.
    private static let pieceBytes = 64 << 10

    private var text: [UInt8] = []
    private let write: ([UInt8]) throws -> Void

    /// - Parameter write: writes a piece.
    init(_ write: @escaping ([UInt8]) throws -> Void) {
        self.write = write
    }

    func append(_ string: String) throws {
        text += string.utf8
        try writePieces()
    }

    func append(_ bytes: Span<UInt8>) throws {
        var start = 0
        while start < bytes.count {
            var end = min(start + Self.pieceBytes, bytes.count)
            // Not within a character.
            while end < bytes.count, bytes[end] & 0xC0 == 0x80 { end += 1 }
            text.append(bytes.extracting(start..<end))
            try writePieces()
            start = end
        }
    }

    /// Appends text with what is not printable escaped.
    func appendVisible(_ bytes: Span<UInt8>) throws {
        text.appendVisible(bytes)
        try writePieces()
    }

    func append(spaces count: Int) throws {
        guard count > 0 else { return }
        try append(String(repeating: " ", count: count))
    }

    /// Writes the rest.
    func end() throws {
        guard !text.isEmpty else { return }
        try write(text)
        text.removeAll(keepingCapacity: true)
    }

    private func writePieces() throws {
        if text.count >= Self.pieceBytes { try end() }
    }
}
