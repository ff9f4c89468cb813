import CRUDModel

/// Reads a table as comma-separated values (RFC 4180), row by row. Only one row, and a piece of the file, are in
/// memory.
///
/// A row ends with CR LF or LF; the end of the last one, or its LF, may be missing. A field that begins with a
/// quotation mark ends with one, and has two in the place of each that it contains; commas and line ends may stand in
/// it. Anywhere else a quotation mark is an error. A byte order mark at the start is passed over.
struct CSVReader {
    /// One field of a row.
    struct Field: Equatable {
        var bytes: [UInt8] = []
        /// Whether it had quotation marks.
        var isQuoted = false
    }

    private static let chunkBytes = 256 << 10
    private static let (quote, carriageReturn, lineFeed) = (UInt8(ascii: "\""), UInt8(ascii: "\r"), UInt8(ascii: "\n"))
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private enum State {
        case atStart, unquoted, quoted
        /// Behind a quotation mark in a quoted field: the first of two, or the last.
        case behindQuote
        /// Behind CR, which is the end of the row if LF follows.
        case behindReturn(wasQuoted: Bool)
    }

    private let input: DumpInput
    private let separator: UInt8
    private let maximumBytes: Int
    private var chunk: [UInt8] = []
    private var position = 0
    /// How many bytes have been read from the file.
    private(set) var offset = 0
    /// The number of the row that was read last, from 1.
    private(set) var row = 0

    /// - Parameters:
    ///   - separator: what stands between fields.
    ///   - maximumBytes: the most bytes of a row.
    init(_ input: DumpInput, separator: UInt8, maximumBytes: Int) throws {
        self.input = input
        self.separator = separator
        self.maximumBytes = maximumBytes
        try fill()
        if chunk.starts(with: Self.byteOrderMark) { position = Self.byteOrderMark.count }
    }

    private mutating func fill() throws {
        chunk = try input.read(at: offset, atMost: Self.chunkBytes)
        offset += chunk.count
        position = 0
    }

    /// The fields of the next row; nil at the end of the file.
    ///
    /// - Throws: `parse_error` or `limit_exceeded`, with the row.
    mutating func next() throws -> [Field]? {
        if position == chunk.count { try fill() }
        guard position < chunk.count else { return nil }
        row += 1
        var fields: [Field] = []
        var field = Field()
        var state = State.atStart
        var bytes = 0
        while true {
            if position == chunk.count { try fill() }
            guard position < chunk.count else {
                if case .quoted = state { throw error("a quotation mark is missing at the end", fields.count) }
                return fields + [field]
            }
            let byte = chunk[position]
            position += 1
            bytes += 1
            guard bytes <= maximumBytes else {
                throw CRUDError(
                    .limitExceeded, "row \(row): longer than the \(maximumBytes) bytes that the daemon accepts",
                    details: CRUDError.Details(limit: "frame_bytes", maximum: maximumBytes))
            }
            switch (state, byte) {
            case (.quoted, Self.quote): state = .behindQuote
            case (.quoted, _): field.bytes.append(byte)
            case (.behindQuote, Self.quote):
                field.bytes.append(byte)
                state = .quoted
            case (.behindReturn, Self.lineFeed): return fields + [field]
            case (.behindReturn(let wasQuoted), _):
                try append(Self.carriageReturn, wasQuoted, &field, fields.count)
                state = .unquoted
                position -= 1
                bytes -= 1
            case (_, separator):
                fields.append(field)
                field = Field()
                state = .atStart
            case (_, Self.lineFeed): return fields + [field]
            case (.behindQuote, Self.carriageReturn): state = .behindReturn(wasQuoted: true)
            case (_, Self.carriageReturn): state = .behindReturn(wasQuoted: false)
            case (.behindQuote, _): throw error("something follows a closing quotation mark", fields.count)
            case (.atStart, Self.quote):
                field.isQuoted = true
                state = .quoted
            case (.unquoted, Self.quote):
                throw error("a quotation mark stands within a field that does not begin with one", fields.count)
            case (.atStart, _), (.unquoted, _):
                field.bytes.append(byte)
                state = .unquoted
            }
        }
    }

    private func append(_ byte: UInt8, _ wasQuoted: Bool, _ field: inout Field, _ column: Int) throws(CRUDError) {
        if wasQuoted { throw error("something follows a closing quotation mark", column) }
        field.bytes.append(byte)
    }

    private func error(_ reason: String, _ column: Int) -> CRUDError {
        CRUDError(.parseError, "row \(row), field \(column + 1): \(reason)")
    }
}
