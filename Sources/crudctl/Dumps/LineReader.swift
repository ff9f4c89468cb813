import CRUDModel
import Glibc

/// Reads a file line by line, from its beginning. Only one line, and a piece of the file, are in memory.
struct LineReader {
    private static let chunkBytes = 256 << 10
    private static let lineEnd = UInt8(ascii: "\n")

    private let input: DumpInput
    private let maximumBytes: Int
    private var chunk: [UInt8] = []
    /// The rest of the chunk, which has not been returned.
    private var rest = 0..<0
    /// How many bytes have been read from the file.
    private(set) var offset = 0

    init(_ input: DumpInput, maximumBytes: Int) {
        self.input = input
        self.maximumBytes = maximumBytes
    }

    /// The next line without its end; nil at the end of the file. The end of the last line may be missing.
    mutating func next() throws -> [UInt8]? {
        var line: [UInt8] = []
        var isAtEnd = true
        while true {
            if rest.isEmpty {
                chunk = try input.read(at: offset, atMost: Self.chunkBytes)
                guard !chunk.isEmpty else { return isAtEnd ? nil : line }
                offset += chunk.count
                rest = 0..<chunk.count
            }
            isAtEnd = false
            let end = lineEnd
            line += chunk[rest.lowerBound..<(end ?? rest.upperBound)]
            guard line.count <= maximumBytes else {
                throw CRUDError(
                    .limitExceeded, "longer than the \(maximumBytes) bytes that the daemon accepts",
                    details: CRUDError.Details(limit: "frame_bytes", maximum: maximumBytes))
            }
            rest = (end.map { $0 + 1 } ?? rest.upperBound)..<rest.upperBound
            if end != nil { return line }
        }
    }

    /// Where in the rest of the chunk a line ends.
    private var lineEnd: Int? {
        chunk.withUnsafeBytes { bytes in
            // The rest lies within the chunk, which is not empty.
            guard let found = unsafe memchr(bytes.baseAddress! + rest.lowerBound, Int32(Self.lineEnd), rest.count)
            else { return nil }
            return unsafe UnsafeRawPointer(found) - bytes.baseAddress!
        }
    }
}
