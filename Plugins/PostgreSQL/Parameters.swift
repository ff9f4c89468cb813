import CPostgreSQL

/// A type of the server, by its number in `pg_type`, which is the same everywhere.
enum ServerType: Oid {
    case bytea = 17
    case int8 = 20
    case text = 25
    case json = 114
    case textArray = 1009
}

/// The parameters of one statement, in binary. Bytes of the host are not copied before libpq does.
struct Parameters {
    private enum Value {
        case null
        case borrowed(UnsafeRawBufferPointer)
        /// A range of `stored`.
        case stored(Range<Int>)
    }

    private var values: [Value] = []
    private var stored: [UInt8] = []

    var count: Int { values.count }

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        values.append(.borrowed(bytes))
    }

    mutating func add(_ text: String) {
        add(copying: Array(text.utf8))
    }

    mutating func add(copying bytes: [UInt8]) {
        values.append(.stored(stored.count..<stored.count + bytes.count))
        stored += bytes
    }

    mutating func add(_ integer: Int64) {
        let start = stored.count
        append(integer)
        values.append(.stored(start..<stored.count))
    }

    /// NULL for 0.
    mutating func add(orNull integer: Int64) {
        if integer == 0 { values.append(.null) } else { add(integer) }
    }

    /// An array of texts.
    mutating func add(array count: Int, _ element: (Int) -> UnsafeRawBufferPointer) {
        let start = stored.count
        append(Int32(count == 0 ? 0 : 1))
        append(Int32(0))
        append(Int32(ServerType.text.rawValue))
        if count > 0 {
            append(Int32(count))
            append(Int32(1))
        }
        for index in 0..<count {
            let bytes = element(index)
            append(Int32(bytes.count))
            stored.append(contentsOf: bytes)
        }
        values.append(.stored(start..<stored.count))
    }

    /// An array of texts.
    mutating func add(array elements: [[UInt8]]) {
        var position = 0
        elements.flatMap(\.self).withUnsafeBytes { bytes in
            add(array: elements.count) { index in
                defer { position += elements[index].count }
                return UnsafeRawBufferPointer(rebasing: bytes[position..<position + elements[index].count])
            }
        }
    }

    private mutating func append(_ integer: some FixedWidthInteger) {
        withUnsafeBytes(of: integer.bigEndian) { stored.append(contentsOf: $0) }
    }

    /// Calls `body` with what libpq wants: values, their lengths and formats.
    func withPointers<Result>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> Result
    ) -> Result {
        // An empty value is not NULL: it needs an address.
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1) { empty in
            stored.withUnsafeBytes { stored in
                func address(_ bytes: UnsafeRawBufferPointer) -> UnsafePointer<CChar>? {
                    bytes.isEmpty
                        ? UnsafePointer(empty.baseAddress) : bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
                }
                let bytes = values.map { value -> UnsafeRawBufferPointer? in
                    switch value {
                    case .null: nil
                    case .borrowed(let bytes): bytes
                    case .stored(let range): UnsafeRawBufferPointer(rebasing: stored[range])
                    }
                }
                let pointers = bytes.map { $0.flatMap(address) }
                let lengths = bytes.map { Int32(clamping: $0?.count ?? 0) }
                let formats = [Int32](repeating: 1, count: values.count)
                return body(pointers, lengths, formats)
            }
        }
    }
}
