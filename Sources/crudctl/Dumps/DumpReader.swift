import CRUDModel

/// Reads a dump from its beginning and checks its shape: for each collection a header, its records, and a last line
/// with their number.
///
/// Every error names its line, and a dump that ends without a last line is one. Whoever reads a dump to its end has
/// checked all of it.
struct DumpReader {
    enum Entry {
        /// The records that follow are of this collection.
        case collection(String)
        case record(DumpRecord)
    }

    private enum State {
        /// Before a header or the end.
        case between
        /// Behind a header and so many records.
        case inside(records: Int)
    }

    private var lines: LineReader
    private var state = State.between
    private var hasCollections = false

    /// The number of the line that was read last, from 1.
    private(set) var line = 0
    /// How many bytes have been read.
    var offset: Int { lines.offset }

    /// - Parameter maximumLineBytes: the length of a line that is certainly too long to be sent.
    init(_ input: DumpInput, maximumLineBytes: Int) {
        lines = LineReader(input, maximumBytes: maximumLineBytes)
    }

    /// The next entry; nil at the end of a complete dump.
    ///
    /// - Throws: `parse_error` or `limit_exceeded`, with the line.
    mutating func next() throws -> Entry? {
        while let text = try nextLine() {
            do {
                switch (state, try DumpLine(text)) {
                case (.between, .header(let collection)):
                    (state, hasCollections) = (.inside(records: 0), true)
                    return .collection(collection)
                case (.inside(let records), .record(let record)):
                    state = .inside(records: records + 1)
                    return .record(record)
                case (.inside(let records), .trailer(let count)):
                    guard count == records else {
                        throw CRUDError.dump("\(count) records are announced, but there are \(records)")
                    }
                    state = .between
                case (.inside, .header):
                    throw CRUDError.dump(#"another collection begins before the last line {"count": n} of this one"#)
                case (.between, _):
                    throw CRUDError.dump(#"a collection begins with a line {"crudd": "dump", …}"#)
                }
            } catch let error as CRUDError {
                throw error.inLine(line)
            }
        }
        guard case .between = state, hasCollections else {
            let what = hasCollections ? #"its last line {"count": n} is missing"# : "it is empty"
            throw CRUDError.dump("the dump is truncated: \(what)").inLine(line)
        }
        return nil
    }

    /// The next line that is not blank.
    private mutating func nextLine() throws -> [UInt8]? {
        while true {
            line += 1
            do {
                guard let text = try lines.next() else { return nil }
                if text.contains(where: { !Self.blanks.contains($0) }) { return text }
            } catch let error as CRUDError {
                throw error.inLine(line)
            }
        }
    }

    private static let blanks = Array(" \t\r".utf8)
}

extension CRUDError {
    /// This error, with the line of the input to which it belongs.
    func inLine(_ line: Int, _ source: LoadSource = .dump) -> CRUDError {
        var error = self
        error.message = "\(source.rawValue) \(line): \(message)"
        error.details.line = line
        return error
    }
}
