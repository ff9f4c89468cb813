/// A request that is built once; only digits are written for each one that is sent.
///
/// Record n has the id 1000000000 + n in ten digits. The id of a create with random ids is that of a random record,
/// followed by ten unique digits: it is next to that record in a B-tree, so that a run changes pages of the whole tree.
struct RequestTemplate {
    enum Part {
        case text(String)
        /// The request's own number, ten digits.
        case tag
        /// The record's id, ten or twenty digits.
        case id
        /// The record's number in its value, ten digits.
        case number
        /// The group of ten records, nine digits: the number without its last digit.
        case group
    }

    static let base: UInt64 = 1_000_000_000
    static let digits = 10

    private(set) var bytes: [UInt8] = []
    private(set) var tagOffset: Int?
    private var idOffset: Int?
    private var numberOffset: Int?
    private var groupOffset: Int?
    /// Not nil: ids are scattered over so many records.
    private let scatteredOver: UInt64?

    init(_ parts: [Part], framed: Bool, scatteredOver: UInt64? = nil) {
        self.scatteredOver = scatteredOver
        if framed { bytes = [0, 0, 0, 0] }
        for part in parts {
            switch part {
            case .text(let text): bytes += text.utf8
            case .tag: tagOffset = reserve(Self.digits)
            case .id: idOffset = reserve(idDigits)
            case .number: numberOffset = reserve(Self.digits)
            case .group: groupOffset = reserve(Self.digits - 1)
            }
        }
        if framed {
            withUnsafeBytes(of: UInt32(bytes.count - 4).bigEndian) { bytes.replaceSubrange(0..<4, with: $0) }
        }
    }

    /// Appends digits that are written later, and returns their offset.
    private mutating func reserve(_ digits: Int) -> Int {
        bytes += [UInt8](repeating: UInt8(ascii: "0"), count: digits)
        return bytes.count - digits
    }

    /// The length of an id.
    var idDigits: Int { scatteredOver == nil ? Self.digits : 2 * Self.digits }

    /// Writes the request for record `number` to the beginning of `buffer`, which must have `bytes.count` bytes.
    func write(to buffer: UnsafeMutableRawBufferPointer, tag: UInt64, number: UInt64) {
        buffer.copyBytes(from: bytes)
        if let tagOffset { Self.put(tag, at: tagOffset, in: buffer) }
        if let numberOffset { Self.put(Self.base + number, at: numberOffset, in: buffer) }
        if let groupOffset { Self.put((Self.base + number) / 10, at: groupOffset, digits: Self.digits - 1, in: buffer) }
        guard let idOffset else { return }
        guard let records = scatteredOver else {
            return Self.put(Self.base + number, at: idOffset, in: buffer)
        }
        let (suffix, neighbour) = Self.mixed(number).quotientAndRemainder(dividingBy: records)
        Self.put(Self.base + neighbour, at: idOffset, in: buffer)
        Self.put(suffix, at: idOffset + Self.digits, in: buffer)
    }

    /// The same as text, with tag 0.
    func text(number: UInt64) -> String {
        String(unsafeUninitializedCapacity: bytes.count) { buffer in
            write(to: UnsafeMutableRawBufferPointer(buffer), tag: 0, number: number)
            return bytes.count
        }
    }

    private static func put(
        _ value: UInt64, at offset: Int, digits: Int = digits, in buffer: UnsafeMutableRawBufferPointer
    ) {
        var rest = value
        for position in stride(from: offset + digits - 1, through: offset, by: -1) {
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            buffer[position] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit)
            rest = quotient
        }
    }

    /// The finaliser of MurmurHash3, a bijection on 32 bits: different numbers have different results.
    private static func mixed(_ number: UInt64) -> UInt64 {
        var mixed = UInt32(truncatingIfNeeded: number)
        mixed = (mixed ^ (mixed >> 16)) &* 0x85eb_ca6b
        mixed = (mixed ^ (mixed >> 13)) &* 0xc2b2_ae35
        return UInt64(mixed ^ (mixed >> 16))
    }
}

extension RequestTemplate {
    /// The value of a record: a JSON object of exactly `bytes` bytes that names its record.
    static func value(bytes: Int) -> [Part] {
        let (head, middle, tail) = (#"{"number":"#, #","group":"#, #","name":"Chill Client","note":""#)
        let words = "the quick brown fox jumps over the lazy dog "
        let room = bytes - head.utf8.count - middle.utf8.count - 2 * digits + 1 - tail.utf8.count - 2
        let note = String(repeating: words, count: room / words.utf8.count + 1).prefix(room)
        return [.text(head), .number, .text(middle), .group, .text(tail + note + #""}"#)]
    }

    /// The minimum length of what `value(bytes:)` returns.
    static let minimumValueBytes = 80

    init(_ workload: Workload) {
        let scattered = workload.operation == .create && workload.order == .random
        let idDigits = scattered ? 2 * Self.digits : Self.digits
        let parts: [Part]
        switch (workload.language, workload.operation) {
        case (.resp, .create), (.resp, .upsert):
            parts =
                [.text("*3\r\n$3\r\nSET\r\n$\(idDigits)\r\n"), .id, .text("\r\n$\(workload.valueBytes)\r\n")]
                + Self.value(bytes: workload.valueBytes) + [.text("\r\n")]
        case (.resp, _):
            parts = [.text("*2\r\n$3\r\nGET\r\n$\(idDigits)\r\n"), .id, .text("\r\n")]
        case (.crudd, .read):
            parts = Self.call("record.read", workload.collection) + [.text(#","id":""#), .id, .text(#""}}"#)]
        case (.crudd, .query):
            let filter = #","limit":10,"filter":{"op":"=","args":[{"property":"group"},"#
            parts = Self.call("record.query", workload.collection) + [.text(filter), .group, .text("]}}}")]
        case (.crudd, .scan):
            // No record has such a number: all are scanned and none is counted.
            let filter = #","filter":{"op":"<","args":[{"property":"number"},0]}"#
            parts = Self.call("record.count", workload.collection) + [.text(filter + "}}")]
        case (.crudd, .increment):
            parts =
                Self.call("record.patch", workload.collection)
                + [.text(#","id":""#), .id, .text(#"","increment":{"number":1}}}"#)]
        case (.crudd, .create), (.crudd, .upsert), (.echo, _):
            let method = workload.operation == .upsert ? "record.upsert" : "record.create"
            let expiry = workload.ttl.map { #","ttl":\#($0)"# } ?? ""
            parts =
                Self.call(method, workload.collection) + [.text(#","id":""#), .id, .text(#"","item":"#)]
                + Self.value(bytes: workload.valueBytes) + [.text(expiry + "}}")]
        }
        self.init(
            parts, framed: workload.language != .resp, scatteredOver: scattered ? workload.records : nil)
    }

    private static func call(_ method: String, _ collection: String) -> [Part] {
        [
            .text(#"{"jsonrpc":"2.0","id":"#), .tag,
            .text(#","method":"\#(method)","params":{"collection":"\#(collection)""#),
        ]
    }
}
