import CRUDJSON
import CRUDModel

/// Reads a binary property list, ours or another tool's.
///
/// Objects refer to each other by number, so that the bytes may describe anything: objects beyond the end, objects that
/// contain themselves, an object that is referred to a thousand times by each of a thousand others. Every offset is
/// checked, no object may occur within itself, and the writer bounds the depth and size of the result, to which every
/// step adds.
struct BinaryPropertyListReader {
    /// A container whose members are being read.
    private struct Level {
        let number: Int
        let isDictionary: Bool
        /// Where its references begin.
        let start: Int
        let count: Int
        var next = 0
    }

    private typealias Marker = BinaryPropertyList.Marker

    private let objectCount: Int
    private let offsetSize: Int
    private let referenceSize: Int
    private let top: Int
    /// Where the table of offsets begins, and the objects end.
    private let table: Int
    private var levels: [Level] = []
    /// For each object whether it is one of `levels`.
    private var isOpen: [Bool]

    /// Reads header and trailer.
    ///
    /// - Throws: `corrupt`.
    init(_ stored: Span<UInt8>) throws(CRUDError) {
        let header = BinaryPropertyList.header
        let trailer = stored.count - BinaryPropertyList.trailerSize
        guard trailer > header.count, Self.begins(stored, with: header) else {
            throw .corrupt("it is not a binary property list")
        }
        offsetSize = Int(stored[trailer + 6])
        referenceSize = Int(stored[trailer + 7])
        objectCount = Self.count(stored, at: trailer + 8)
        top = Self.count(stored, at: trailer + 16)
        table = Self.count(stored, at: trailer + 24)
        guard 1...8 ~= offsetSize, 1...8 ~= referenceSize, header.count..<trailer ~= table,
            objectCount >= 1, objectCount <= (trailer - table) / offsetSize, top >= 0, top < objectCount
        else { throw .corrupt("the trailer of its property list is wrong") }
        isOpen = Array(repeating: false, count: objectCount)
    }

    /// What an object counts beside its text.
    private static let objectWork = 16

    /// - Throws: `corrupt`, and what the writer throws.
    mutating func read(
        _ stored: Span<UInt8>, into item: inout ItemWriter, _ work: inout Work
    ) throws(CRUDError) {
        try object(top, stored, &item, &work)
        while let level = levels.last, work.take(Self.objectWork) {
            guard level.next < level.count else {
                levels.removeLast()
                isOpen[level.number] = false
                if level.isDictionary { item.endDictionary() } else { item.endArray() }
                continue
            }
            levels[levels.count - 1].next += 1
            var place = level.start + level.next * referenceSize
            if level.isDictionary {
                try key(reference(stored, at: place), stored, &item, &work)
                place += level.count * referenceSize
            }
            try object(reference(stored, at: place), stored, &item, &work)
        }
    }

    // MARK: Objects

    private mutating func object(
        _ number: Int, _ stored: Span<UInt8>, _ item: inout ItemWriter, _ work: inout Work
    ) throws(CRUDError) {
        let start = try offset(of: number, stored)
        switch stored[start] & 0xF0 {
        case Marker.null: try simple(stored[start], &item)
        case Marker.integer: try item.integer(integer(stored, at: start))
        case Marker.real: try item.real(real(stored, at: start))
        case Marker.asciiString, Marker.unicodeString:
            let text = try string(stored, at: start, &work)
            try item.string(text.span, &work)
        case Marker.array, Marker.dictionary:
            guard !isOpen[number] else { throw .corrupt("an object of its property list contains itself") }
            let isDictionary = stored[start] & 0xF0 == Marker.dictionary
            let (count, first) = try size(stored, at: start)
            try check(first, count: count, size: isDictionary ? referenceSize * 2 : referenceSize)
            if isDictionary { try item.beginDictionary() } else { try item.beginArray() }
            isOpen[number] = true
            levels.append(Level(number: number, isDictionary: isDictionary, start: first, count: count))
        case Marker.date: throw .corrupt("JSON cannot represent a date")
        case Marker.data: throw .corrupt("JSON cannot represent data")
        case Marker.uid: throw .corrupt("JSON cannot represent a UID")
        default: throw .corrupt("its property list has an object of an unknown kind")
        }
    }

    private mutating func key(
        _ number: Int, _ stored: Span<UInt8>, _ item: inout ItemWriter, _ work: inout Work
    ) throws(CRUDError) {
        let start = try offset(of: number, stored)
        let kind = stored[start] & 0xF0
        guard kind == Marker.asciiString || kind == Marker.unicodeString else {
            throw .corrupt("a key in its property list is not a string")
        }
        let name = try string(stored, at: start, &work)
        try item.key(name.span, &work)
    }

    private func simple(_ marker: UInt8, _ item: inout ItemWriter) throws(CRUDError) {
        switch marker {
        case Marker.null: try item.null()
        case Marker.false: try item.boolean(false)
        case Marker.true: try item.boolean(true)
        default: throw .corrupt("its property list has an object of an unknown kind")
        }
    }

    /// The integer whose marker stands there.
    private func integer(_ stored: Span<UInt8>, at start: Int) throws(CRUDError) -> Int128 {
        let size = 1 << Int(stored[start] & 0x0F)
        guard stored[start] & 0xF0 == Marker.integer, size <= 16 else {
            throw .corrupt("an integer in its property list has a wrong size")
        }
        try check(start + 1, count: 1, size: size)
        let high = Self.unsigned(stored, at: start + 1, size: min(size, 8))
        if size < 8 { return Int128(high) }
        let signed = Int128(Int64(bitPattern: high))
        return size == 8 ? signed : signed << 64 | Int128(Self.unsigned(stored, at: start + 9, size: 8))
    }

    private func real(_ stored: Span<UInt8>, at start: Int) throws(CRUDError) -> Double {
        let size = 1 << Int(stored[start] & 0x0F)
        guard size == 4 || size == 8 else { throw .corrupt("a real in its property list has a wrong size") }
        try check(start + 1, count: 1, size: size)
        let bits = Self.unsigned(stored, at: start + 1, size: size)
        return size == 8 ? Double(bitPattern: bits) : Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
    }

    /// The string whose marker stands there, in UTF-8.
    private func string(_ stored: Span<UInt8>, at start: Int, _ work: inout Work) throws(CRUDError) -> [UInt8] {
        let (count, first) = try size(stored, at: start)
        let isUnicode = stored[start] & 0xF0 == Marker.unicodeString
        try check(first, count: count, size: isUnicode ? 2 : 1)
        var text: [UInt8] = []
        text.reserveCapacity(count)
        var place = first
        work.begin(at: place)
        guard isUnicode else {
            while place < first + count, work.passes(place) {
                guard stored[place] < 0x80 else { throw .corrupt("a string in its property list is not ASCII") }
                text.append(stored[place])
                place += 1
            }
            work.end(at: place)
            return text
        }
        let end = first + count * 2
        defer { work.end(at: place) }
        while place < end, work.passes(place) {
            var code = UInt32(Self.unsigned(stored, at: place, size: 2))
            place += 2
            if code & 0xFC00 == 0xD800, place < end, stored[place] & 0xFC == 0xDC {
                code = 0x10000 + (code & 0x3FF) << 10 + UInt32(Self.unsigned(stored, at: place, size: 2)) & 0x3FF
                place += 2
            }
            guard let scalar = Unicode.Scalar(code) else {
                throw .corrupt("a string in its property list has half of a surrogate pair")
            }
            text.append(contentsOf: scalar.utf8)
        }
        return text
    }

    // MARK: Numbers

    /// The size that a marker tells, and where what it counts begins.
    private func size(_ stored: Span<UInt8>, at start: Int) throws(CRUDError) -> (count: Int, first: Int) {
        let nibble = stored[start] & 0x0F
        guard nibble == 15 else { return (Int(nibble), start + 1) }
        try check(start + 1, count: 1, size: 1)
        guard let count = Int(exactly: try integer(stored, at: start + 1)), count >= 0 else {
            throw .corrupt("an object of its property list has a wrong size")
        }
        return (count, start + 2 + (1 << Int(stored[start + 1] & 0x0F)))
    }

    /// Where an object's marker stands.
    private func offset(of number: Int, _ stored: Span<UInt8>) throws(CRUDError) -> Int {
        let offset = Self.unsigned(stored, at: table + number * offsetSize, size: offsetSize)
        guard let offset = Int(exactly: offset), BinaryPropertyList.header.count..<table ~= offset else {
            throw .corrupt("an offset in its property list points outside")
        }
        return offset
    }

    /// The number of an object that a container refers to.
    private func reference(_ stored: Span<UInt8>, at place: Int) throws(CRUDError) -> Int {
        let number = Self.unsigned(stored, at: place, size: referenceSize)
        guard let number = Int(exactly: number), number < objectCount else {
            throw .corrupt("a reference in its property list points outside")
        }
        return number
    }

    /// That so many things of that size stand among the objects.
    private func check(_ start: Int, count: Int, size: Int) throws(CRUDError) {
        guard start <= table, count <= (table - start) / size else {
            throw .corrupt("an object of its property list reaches beyond the end")
        }
    }

    private static func begins(_ stored: Span<UInt8>, with header: [UInt8]) -> Bool {
        for index in header.indices where stored[index] != header[index] { return false }
        return true
    }

    /// A number of the trailer; −1 for one that counts nothing in this machine.
    private static func count(_ stored: Span<UInt8>, at start: Int) -> Int {
        Int(exactly: unsigned(stored, at: start, size: 8)) ?? -1
    }

    /// A number of `size` bytes, at most eight, all of which are there.
    private static func unsigned(_ stored: Span<UInt8>, at start: Int, size: Int) -> UInt64 {
        var value: UInt64 = 0
        for index in start..<start + size { value = value << 8 | UInt64(stored[index]) }
        return value
    }
}
