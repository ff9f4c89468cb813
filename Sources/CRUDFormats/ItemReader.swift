import CRUDJSON
import CRUDModel

/// Parses an item's JSON text and passes its values to a property list, refusing what a property list cannot represent.
///
/// Nesting is kept on a stack of its own, not the thread's; the stack also yields the path of a value that is refused.
struct ItemReader: ~Copyable {
    /// An array or object that has been entered.
    private enum Level {
        /// An object, and the name of the member that is being read.
        case object(JSONSlice?)
        /// An array, and the index of the element that is being read.
        case array(Int)
    }

    private var scanner = JSONScanner()
    private var levels: [Level] = []

    /// - Throws: `unsupported` with `details.path`; anything where the work is stopped.
    mutating func read(
        _ item: Span<UInt8>, into sink: inout some PropertyListSink & ~Copyable, _ work: inout Work
    ) throws(CRUDError) {
        do throws(CRUDError) {
            try value(item, &sink, &work)
            while let level = levels.last { try next(in: level, item, &sink, &work) }
        } catch {
            guard error.code == .unsupported else { throw error }
            var located = error
            located.details.path = path(item)
            throw located
        }
    }

    /// Continues inside the innermost array or object.
    private mutating func next(
        in level: Level, _ item: Span<UInt8>, _ sink: inout some PropertyListSink & ~Copyable, _ work: inout Work
    ) throws(CRUDError) {
        switch level {
        case .object(let previous):
            var isFirst = previous == nil
            let key = try scan { scanner throws(JSONSyntaxError) in
                try scanner.nextKey(item, isFirst: &isFirst, &work)
            }
            guard let key else {
                levels.removeLast()
                return sink.endDictionary()
            }
            levels[levels.count - 1] = .object(key)
            if key.hasEscapes {
                try sink.key(key.decodedString(item, &work).span, &work)
            } else {
                try sink.key(item.extracting(key.content), &work)
            }
        case .array(let previous):
            var isFirst = previous < 0
            let hasMore = try scan { scanner throws(JSONSyntaxError) in
                try scanner.nextElement(item, isFirst: &isFirst, &work)
            }
            guard hasMore else {
                levels.removeLast()
                return sink.endArray()
            }
            levels[levels.count - 1] = .array(previous + 1)
        }
        try value(item, &sink, &work)
    }

    /// Passes a scalar to the sink, or enters an array or object.
    private mutating func value(
        _ item: Span<UInt8>, _ sink: inout some PropertyListSink & ~Copyable, _ work: inout Work
    ) throws(CRUDError) {
        switch try scan({ scanner throws(JSONSyntaxError) in try scanner.peekKind(item, &work) }) {
        case .object:
            scanner.enter()
            try sink.beginDictionary()
            levels.append(.object(nil))
        case .array:
            scanner.enter()
            try sink.beginArray()
            levels.append(.array(-1))
        default: try scalar(item, &sink, &work)
        }
    }

    private mutating func scalar(
        _ item: Span<UInt8>, _ sink: inout some PropertyListSink & ~Copyable, _ work: inout Work
    ) throws(CRUDError) {
        let slice = try scan { scanner throws(JSONSyntaxError) in try scanner.value(item, &work) }
        switch slice.kind {
        case .string:
            if slice.hasEscapes {
                try sink.string(slice.decodedString(item, &work).span, &work)
            } else {
                try sink.string(item.extracting(slice.content), &work)
            }
        case .number:
            switch try PropertyListNumber(json: item.extracting(slice.range), &work) {
            case .integer(let value): try sink.integer(value)
            case .real(let value): try sink.real(value)
            }
        case .true: try sink.boolean(true)
        case .false: try sink.boolean(false)
        case .null, .array, .object: throw CRUDError(.unsupported, "a property list cannot represent null")
        }
    }

    private mutating func scan<Result>(
        _ step: (inout JSONScanner) throws(JSONSyntaxError) -> Result
    ) throws(CRUDError) -> Result {
        do throws(JSONSyntaxError) {
            return try step(&scanner)
        } catch {
            // The request that brought the item has been scanned before. The work may have been stopped.
            throw CRUDError(.internalError, "the item is not valid JSON: \(error.reason.rawValue)")
        }
    }

    /// The path of the current value: names joined by dots as in `fields`, indexes in brackets, `orders[2].price`;
    /// empty for the item itself. A bracket in a name has a backslash before it.
    private func path(_ item: Span<UInt8>) -> String {
        var path: [UInt8] = []
        for (depth, level) in levels.enumerated() {
            switch level {
            case .array(let index): path.append(contentsOf: "[\(index)]".utf8)
            case .object(let key):
                guard let key else { continue }
                if depth > 0 { path.append(UInt8(ascii: ".")) }
                for byte in key.decodedString(item) {
                    if byte == UInt8(ascii: ".") || byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "[") {
                        path.append(UInt8(ascii: "\\"))
                    }
                    path.append(byte)
                }
            }
        }
        return String(decoding: path, as: UTF8.self)
    }
}
