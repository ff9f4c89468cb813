import CRUDJSON
import CRUDModel

/// Writes a binary property list.
///
/// The size of a reference depends on the number of objects, so all objects are collected first and written by
/// ``finish(into:)``. Equal scalars, mostly names of members, are stored once, as CoreFoundation does.
struct BinaryPropertyListWriter: PropertyListSink, ~Copyable {
    private enum Object {
        /// Its encoding has that index in `scalars`.
        case scalar(Int)
        /// What it refers to, at that place of `references`.
        case array(Range<Int>)
        /// The same, keys before values.
        case dictionary(Range<Int>)
    }

    private var objects: [Object] = []
    /// The encodings of scalars, each once.
    private var scalars = NameTable()
    private var references: [UInt32] = []
    /// The number of each scalar.
    private var numbers: [UInt32] = []
    /// What the containers that have begun refer to so far, the outermost first; a dictionary's keys and values in
    /// turn.
    private var pending: [UInt32] = []
    /// The containers that have begun: the number of each, and where in `pending` its references begin.
    private var levels: [(number: Int, start: Int)] = []

    private typealias Marker = BinaryPropertyList.Marker

    /// What an object counts in the end: its encoding is copied.
    private static let objectWork = 16

    /// The most stored bytes that an item of `itemBytes` bytes can take.
    static func maximumBytes(ofItem itemBytes: Int) -> Int {
        // `[],` is a marker, a reference and an offset.
        64 + 8 * itemBytes
    }

    mutating func beginDictionary() { begin(.dictionary(0..<0)) }

    mutating func endDictionary() {
        let (number, start) = levels.removeLast()
        let first = references.count
        for index in stride(from: start, to: pending.count, by: 2) { references.append(pending[index]) }
        for index in stride(from: start + 1, to: pending.count, by: 2) { references.append(pending[index]) }
        objects[number] = .dictionary(first..<references.count)
        pending.removeSubrange(start...)
    }

    mutating func beginArray() { begin(.array(0..<0)) }

    mutating func endArray() {
        let (number, start) = levels.removeLast()
        let first = references.count
        references.append(contentsOf: pending[start...])
        objects[number] = .array(first..<references.count)
        pending.removeSubrange(start...)
    }

    mutating func key(_ name: Span<UInt8>, _ work: inout Work) { string(name, &work) }

    mutating func string(_ value: Span<UInt8>, _ work: inout Work) {
        var encoded: [UInt8] = []
        let unitCount = Self.unitCount(value, &work)
        if let unitCount {
            encoded.append(marker: Marker.unicodeString, count: unitCount)
            Self.appendUnits(of: value, to: &encoded, &work)
        } else {
            encoded.append(marker: Marker.asciiString, count: value.count)
            encoded.append(value)
        }
        add(encoded, &work)
    }

    /// How long a text is in UTF-16; nil if it is ASCII.
    private static func unitCount(_ text: Span<UInt8>, _ work: inout Work) -> Int? {
        var count = 0
        var isASCII = true
        work.begin(at: 0)
        for index in text.indices {
            guard work.passes(index) else { return nil }
            let byte = text[index]
            if byte >= 0x80 { isASCII = false }
            if byte & 0xC0 != 0x80 { count += byte < 0xF0 ? 1 : 2 }
        }
        work.end(at: text.count)
        return isASCII ? nil : count
    }

    /// Appends a text, which is valid UTF-8, in UTF-16.
    private static func appendUnits(of text: Span<UInt8>, to bytes: inout [UInt8], _ work: inout Work) {
        bytes.reserveCapacity(bytes.count + 2 * text.count)
        var index = 0
        work.begin(at: 0)
        while index < text.count, work.passes(index) {
            let lead = UInt32(text[index])
            let length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
            var code = length == 1 ? lead : lead & (0x7F >> UInt32(length))
            for offset in 1..<length { code = code << 6 | UInt32(text[index + offset] & 0x3F) }
            index += length
            if code >= 0x10000 {
                bytes.append(bigEndian: UInt64(0xD800 + (code - 0x10000) >> 10), size: 2)
                code = 0xDC00 + (code - 0x10000) & 0x3FF
            }
            bytes.append(bigEndian: UInt64(code), size: 2)
        }
        work.end(at: text.count)
    }

    mutating func integer(_ value: Int128) {
        var work = Work()
        var encoded: [UInt8] = []
        encoded.append(integer: value)
        add(encoded, &work)
    }

    mutating func real(_ value: Double) {
        var work = Work()
        var encoded = [Marker.real | 3]
        encoded.append(bigEndian: value.bitPattern, size: 8)
        add(encoded, &work)
    }

    mutating func boolean(_ value: Bool) {
        var work = Work()
        add([value ? Marker.true : Marker.false], &work)
    }

    /// Appends the property list, after its last value.
    borrowing func finish(into stored: inout [UInt8], _ work: inout Work) {
        let start = stored.count
        let referenceSize = Self.size(of: objects.count)
        var offsets: [Int] = []
        offsets.reserveCapacity(objects.count)
        stored.append(contentsOf: BinaryPropertyList.header)
        for object in objects {
            offsets.append(stored.count - start)
            guard work.take(Self.objectWork) else { return }
            switch object {
            case .scalar(let index): stored.append(contentsOf: scalars.name(at: index))
            case .array(let range):
                stored.append(marker: Marker.array, count: range.count)
                append(references[range], size: referenceSize, to: &stored, &work)
            case .dictionary(let range):
                stored.append(marker: Marker.dictionary, count: range.count / 2)
                append(references[range], size: referenceSize, to: &stored, &work)
            }
        }
        let table = stored.count - start
        let offsetSize = Self.size(of: table)
        for offset in offsets {
            guard work.take(offsetSize) else { return }
            stored.append(bigEndian: UInt64(offset), size: offsetSize)
        }
        stored.append(contentsOf: [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)])
        for number in [objects.count, 0, table] { stored.append(bigEndian: UInt64(number), size: 8) }
    }

    private borrowing func append(
        _ references: ArraySlice<UInt32>, size: Int, to stored: inout [UInt8], _ work: inout Work
    ) {
        for number in references {
            guard work.take(size) else { return }
            stored.append(bigEndian: UInt64(number), size: size)
        }
    }

    // MARK: Parts

    private mutating func begin(_ object: Object) {
        pending.append(UInt32(objects.count))
        levels.append((objects.count, pending.count))
        objects.append(object)
    }

    private mutating func add(_ encoded: [UInt8], _ work: inout Work) {
        let (index, isNew) = scalars.insert(0..<encoded.count, encoded.span, of: 0, &work)
        if isNew {
            numbers.append(UInt32(objects.count))
            objects.append(.scalar(index))
        }
        pending.append(numbers[index])
    }

    /// How many bytes the numbers up to this one take, of 1, 2, 4 and 8.
    private static func size(of number: Int) -> Int {
        switch number {
        case ...0xFF: 1
        case ...0xFFFF: 2
        case ...0xFFFF_FFFF: 4
        default: 8
        }
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian value: UInt64, size: Int) {
        for shift in stride(from: size * 8 - 8, through: 0, by: -8) {
            append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    /// A marker, with a size that may not fit into its lower half.
    fileprivate mutating func append(marker: UInt8, count: Int) {
        append(marker | UInt8(Swift.min(count, 15)))
        if count >= 15 { append(integer: Int128(count)) }
    }

    /// An integer with its marker, in the form that CoreFoundation gives it.
    fileprivate mutating func append(integer value: Int128) {
        let low = UInt64(truncatingIfNeeded: value)
        let logarithm =
            switch value {
            case 0...0xFF: 0
            case 0...0xFFFF: 1
            case 0...0xFFFF_FFFF: 2
            case Int128(Int64.min)...Int128(Int64.max): 3
            default: 4
            }
        append(BinaryPropertyList.Marker.integer | UInt8(logarithm))
        if logarithm == 4 { append(bigEndian: UInt64(truncatingIfNeeded: value >> 64), size: 8) }
        append(bigEndian: low, size: Swift.min(8, 1 << logarithm))
    }
}
