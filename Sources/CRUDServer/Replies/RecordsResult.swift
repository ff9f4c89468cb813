import CRUDEventLoop
import CRUDFormats
import CRUDJSON
import CRUDModel
import CRUDPluginCalls
import CRUDQuery
import CRUDStorage

/// Writes the result of `record.read`, or of `record.readMany`.
struct RecordsResult: Sendable {
    enum Shape: Sendable {
        case record(FieldProjection?)
        case records
    }

    private let shape: Shape
    /// As they were sent: strings of JSON.
    let sentIDs: [ArraySlice<UInt8>]
    /// The collection that is read, whose codec decodes what is found.
    private(set) var collection: BackendCollection
    private var backend: Backend
    /// For each id, what allows to cache what is found; empty: nothing is.
    var tickets: [CacheTicket?] = []

    /// How many ids of corrupt records are named.
    private static let maximumCorrupt = 100

    init(_ shape: Shape, sentIDs: [ArraySlice<UInt8>], in collection: Collection) {
        self.shape = shape
        self.sentIDs = sentIDs
        self.collection = collection.stored
        backend = collection.backend
    }

    /// The read begins again. The collection may be in another place by now, in another format; what is found there
    /// must not be cached as what the former place holds.
    ///
    /// - Returns: whether it is.
    mutating func begin(in collection: Collection) -> Bool {
        guard collection.stored !== self.collection else { return false }
        self.collection = collection.stored
        backend = collection.backend
        tickets = []
        return true
    }

    /// Whether it takes much longer to write an item than to copy it.
    var transformsItems: Bool {
        if case .record(.some) = shape { return true }
        return !collection.codec.keepsText
    }

    /// - Parameters:
    ///   - records: for each id its record, nil where there is none.
    ///   - work: of making the items.
    /// - Throws: `record_not_found` and `corrupt`, ``CRUDError/stopped`` where the work is stopped.
    func append(
        _ records: [StoredRecord?], of batch: ReadBatch, by writer: RecordWriter, to output: inout StreamBuffer,
        _ work: inout Work
    ) throws(CRUDError) {
        switch shape {
        case .record(let fields):
            guard let record = records[0] else {
                fill(absent: 0, by: writer)
                throw .recordNotFound(id(0), in: collection.name)
            }
            try append(record, 0, fields, of: batch, by: writer, to: &output, &work)
        case .records: try appendAll(records, of: batch, by: writer, to: &output, &work)
        }
    }

    private func append(
        _ record: StoredRecord, _ index: Int, _ fields: FieldProjection?, of batch: ReadBatch,
        by writer: RecordWriter, to output: inout StreamBuffer, _ work: inout Work
    ) throws(CRUDError) {
        output.append(#"{"id":"#)
        let sentID = sentIDs[index]
        output.append(sentID.span)
        do throws(CRUDError) {
            let ticket = tickets.isEmpty ? nil : tickets[index]
            let id = ticket == nil ? [] : id(index)
            try id.span.withUnsafeBytes { id throws(CRUDError) in
                let found = FoundRecord(
                    id: id, item: batch.found(record.item), revision: batch.found(record.revision),
                    expiresAt: record.expiresAt)
                try writer.append(found, collection.codec, fields, filling: ticket, to: &output, &work)
            }
        } catch {
            if error.code == .corrupt { backend.note(corrupt: id(index), in: collection) }
            throw error.about(id(index), in: collection.name)
        }
        output.append(UInt8(ascii: "}"))
    }

    private func appendAll(
        _ records: [StoredRecord?], of batch: ReadBatch, by writer: RecordWriter, to output: inout StreamBuffer,
        _ work: inout Work
    ) throws(CRUDError) {
        var missing: [ArraySlice<UInt8>] = []
        var corrupt: [ArraySlice<UInt8>] = []
        output.append(#"{"records":["#)
        let first = output.count
        for (index, (id, record)) in zip(sentIDs, records).enumerated() {
            guard let record else {
                missing.append(id)
                fill(absent: index, by: writer)
                continue
            }
            let start = output.count
            if start > first { output.append(UInt8(ascii: ",")) }
            do throws(CRUDError) {
                try append(record, index, nil, of: batch, by: writer, to: &output, &work)
            } catch {
                guard error.code == .corrupt else { throw error }
                output.truncate(to: start)
                corrupt.append(id)
            }
            try Self.check(output.count - first, by: writer)
        }
        output.append(#"],"missing":"#)
        output.appendArray(ofStrings: missing)
        if !corrupt.isEmpty {
            output.append(#","corrupt":"#)
            output.appendArray(ofStrings: corrupt.prefix(Self.maximumCorrupt))
        }
        output.append(UInt8(ascii: "}"))
    }

    /// Stops where the records are longer than a frame: items of other formats may be much longer than they are stored.
    private static func check(_ count: Int, by writer: RecordWriter) throws(CRUDError) {
        let maximum = writer.maximumItemBytes
        if count > maximum { throw .replyTooLong(maximumBytes: maximum) }
    }

    private func fill(absent index: Int, by writer: RecordWriter) {
        guard !tickets.isEmpty, let ticket = tickets[index] else { return }
        let id = id(index)
        writer.fill(ticket, absent: id.span)
    }

    /// Appends the result of several ids if all of them are cached.
    ///
    /// - Parameter ids: decoded.
    /// - Returns: false if they are not; what has been appended is to be truncated.
    mutating func appendCached(
        _ ids: [[UInt8]], _ key: CacheKey, by writer: RecordWriter, to output: inout StreamBuffer
    ) throws(CRUDError) -> Bool {
        var missing: [ArraySlice<UInt8>] = []
        var isCached = true
        output.append(#"{"records":["#)
        let first = output.count
        for (sentID, id) in zip(sentIDs, ids) {
            let start = output.count
            if start > first { output.append(UInt8(ascii: ",")) }
            output.append(#"{"id":"#)
            output.append(sentID.span)
            switch try writer.appendCached(id.span, key, nil, to: &output) {
            case .found:
                output.append(UInt8(ascii: "}"))
                try Self.check(output.count - first, by: writer)
            case .absent:
                output.truncate(to: start)
                missing.append(sentID)
            case .miss(let ticket):
                // The others are asked for all the same: they are going to be read, too.
                isCached = false
                output.truncate(to: start)
                tickets.append(ticket)
                continue
            }
            tickets.append(nil)
        }
        output.append(#"],"missing":"#)
        output.appendArray(ofStrings: missing)
        output.append(UInt8(ascii: "}"))
        return isCached
    }

    /// One of the ids, decoded.
    func id(_ index: Int) -> [UInt8] {
        let text = sentIDs[index]
        var scanner = JSONScanner()
        // It has been found valid when it came.
        let string = try? scanner.value(text.span)
        return string?.decodedString(text.span) ?? []
    }
}
