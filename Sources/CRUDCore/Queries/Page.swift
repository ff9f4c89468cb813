import CRUDJSON
import CRUDModel

/// The records of an answer as text, as many as fit.
struct Page: ~Copyable {
    /// The records, with commas between.
    private(set) var text: [UInt8] = []
    private(set) var count = 0
    private let projection: FieldProjection?
    let maximumBytes: Int
    private var checking = ItemText()

    /// - Parameter maximumBytes: how long records and cursor may be together.
    init(projection: FieldProjection?, maximumBytes: Int) {
        self.projection = projection
        self.maximumBytes = maximumBytes
    }

    /// Whether no part of an item is shown.
    var isWithoutItems: Bool { projection?.isEmpty == true }

    /// Appends a record; false if it does not fit.
    ///
    /// - Parameters:
    ///   - item: JSON text, or nothing where no part of it is shown.
    ///   - position: where it stands in the order: a cursor behind it has to fit as well.
    /// - Throws: `corrupt` where the item is no JSON; `limit_exceeded` where not even one record fits.
    mutating func append(
        id: [UInt8], item: Span<UInt8>, revision: UnsafeRawBufferPointer, at position: SortPosition
    ) throws(CRUDError) -> Bool {
        let start = text.count
        if count > 0 { text.append(UInt8(ascii: ",")) }
        text.append(contentsOf: #"{"id":"#.utf8)
        text.appendJSONString(id)
        text.append(contentsOf: #","item":"#.utf8)
        do throws(JSONSyntaxError) {
            try append(item)
        } catch {
            throw .corruptItem(id: id)
        }
        text.append(contentsOf: #","revision":"#.utf8)
        // One that somebody has written by hand may be anything.
        text.appendJSONString(String(decoding: revision, as: UTF8.self).utf8)
        text.append(UInt8(ascii: "}"))
        if text.count + position.maximumCursorBytes <= maximumBytes {
            count += 1
            return true
        }
        text.removeSubrange(start...)
        if count > 0 { return false }
        throw CRUDError(
            .limitExceeded, "not one record fits an answer", details: .init(limit: "frame_bytes", maximum: maximumBytes)
        )
    }

    private mutating func append(_ item: Span<UInt8>) throws(JSONSyntaxError) {
        guard let projection else {
            try checking.check(item)
            return item.withUnsafeBufferPointer { text.append(contentsOf: $0) }
        }
        if projection.isEmpty { return text.append(contentsOf: "{}".utf8) }
        try checking.check(item)
        try projection.append(of: item, to: &text)
    }
}

extension SortPosition {
    /// How long a cursor behind this position is, at the most.
    fileprivate var maximumCursorBytes: Int {
        var bytes = 64 + id.count * 6
        for case .string(let text) in values { bytes += text.count * 6 }
        bytes += values.count * 32
        // Escapes make a text six times as long at the most; that is looked into only where it matters.
        return Base64.size(of: bytes < 4096 ? bytes : json.count + 16) + 16
    }
}
