import CRUDConfiguration
import CRUDEventLoop
import CRUDFormats
import CRUDJSON
import CRUDModel
import CRUDQuery
import CRUDStorage

/// Writes records into replies, the part of their items that is wanted.
///
/// An item that is stored as JSON text is passed on as it is, after a scan: somebody may have edited the storage by
/// hand, and what is not valid JSON must not get into a frame. A store hands the record over while its bytes are in
/// place, so that a read on the event loop copies it once, from the database's memory into the session's output.
final class RecordWriter: RecordVisitor {
    /// What every read touches. Not checked for exclusive access at run time, which a profile of reads shows: one
    /// thread uses it, and nothing that is called during an access comes back to it.
    private struct State: ~Copyable {
        var scanner = JSONScanner()
        /// Where the record of the read in progress goes.
        var output: UnsafeMutablePointer<StreamBuffer>?
        var codec = Codec(.json)
        var projection: FieldProjection?
        var outcome = Outcome.nothing
        /// Allows to cache what the read in progress finds.
        var ticket: CacheTicket?
    }

    private enum Outcome {
        case nothing, record
        /// Decoding it, or finding the part that is wanted, takes long.
        case long
        /// The record cannot be written. (Indirect: an error is large, and this is looked at for each record.)
        indirect case failed(CRUDError)
    }

    @exclusivity(unchecked) private var state = State()
    private let cache: RecordCache
    /// How long an item may be: no reply can be longer than a frame, and so no item in it.
    var maximumItemBytes: Int

    init(_ cache: RecordCache, maximumItemBytes: Int) {
        self.cache = cache
        self.maximumItemBytes = maximumItemBytes
    }

    /// Reads a record at once, if it is cached or its store can, and appends it without the closing brace of the
    /// result.
    ///
    /// - Returns: false if the store cannot read without waiting, or the item takes long to decode; nothing has been
    ///   appended then.
    /// - Throws: `record_not_found`, `corrupt`, and what the store throws.
    func read(
        _ id: Span<UInt8>, in collection: Collection, _ projection: FieldProjection?, into output: inout StreamBuffer
    ) throws(CRUDError) -> Bool {
        state.ticket = nil
        if let key = collection.cacheKey {
            switch try appendCached(id, key, projection, to: &output) {
            case .found: return true
            case .absent: throw .recordNotFound(id.withUnsafeBufferPointer { Array($0) }, in: collection.name)
            case .miss(let ticket): state.ticket = ticket
            }
        }
        state.codec = collection.codec
        state.projection = projection
        state.outcome = .nothing
        let isRead = try withUnsafeMutablePointer(to: &output) { output throws(CRUDError) in
            state.output = output
            defer { state.output = nil }
            return try collection.store.readNow(id, in: collection.stored, into: self)
        }
        guard isRead else { return false }
        switch state.outcome {
        case .record: return true
        case .long: return false
        case .nothing:
            if let ticket = state.ticket { fill(ticket, absent: id) }
            throw .recordNotFound(id.withUnsafeBufferPointer { Array($0) }, in: collection.name)
        case .failed(let error):
            let id = id.withUnsafeBufferPointer { Array($0) }
            if error.code == .corrupt { collection.backend.note(corrupt: id, in: collection.stored) }
            throw error.about(id, in: collection.name)
        }
    }

    func visit(_ record: FoundRecord) -> Bool {
        guard let output = state.output else { return false }
        let isCopied = state.codec.keepsText && state.projection == nil
        guard isCopied || record.item.count < LongItem.leastBytes else {
            state.outcome = .long
            return true
        }
        var work = isCopied ? Work() : LongItem.shortWork
        do throws(CRUDError) {
            try append(record, state.codec, state.projection, filling: state.ticket, to: &output.pointee, &work)
            state.outcome = .record
        } catch {
            state.outcome = work.isStopped ? .long : .failed(error)
        }
        return true
    }

    /// Appends `,"item":…,"revision":…` of a record, and `,"expiresAt":…` where it expires.
    ///
    /// - Parameters:
    ///   - ticket: allows to cache it.
    ///   - work: of decoding it, and of finding the part that is wanted.
    /// - Throws: `corrupt` if the item cannot be decoded, ``CRUDError/stopped`` where the work is stopped.
    func append(
        _ record: FoundRecord, _ codec: Codec, _ projection: FieldProjection?, filling ticket: CacheTicket?,
        to output: inout StreamBuffer, _ work: inout Work
    ) throws(CRUDError) {
        // The buffer is valid during this call.
        let stored = unsafe record.item.bindMemory(to: UInt8.self).span
        if codec.keepsText {
            guard (try? state.scanner.document(stored, &work)) != nil else {
                throw work.isStopped ? .stopped : Self.invalidItem
            }
            try append(item: stored, projection, to: &output, &work)
            if let ticket { fill(ticket, record, stored) }
        } else {
            var item: [UInt8] = []
            try codec.decode(stored: stored, into: &item, maximumBytes: maximumItemBytes, &work)
            try append(item: item.span, projection, to: &output, &work)
            if let ticket { fill(ticket, record, item.span) }
        }
        append(revision: record.revision, expiresAt: record.expiresAt, to: &output)
    }

    private func append(revision: UnsafeRawBufferPointer, expiresAt: Int64, to output: inout StreamBuffer) {
        output.append(#","revision":""#)
        output.append(escaped: revision)
        output.append(UInt8(ascii: "\""))
        guard expiresAt != 0 else { return }
        output.append(#","expiresAt":"#)
        expiresAt.description.utf8.withContiguousStorageIfAvailable { output.append($0.span) }
    }

    // MARK: The cache

    /// What ``read(_:in:_:into:)`` has returned false for may be cached by this when it is found; nil: it may not.
    var ticket: CacheTicket? { state.ticket }

    /// Appends a record that is cached, as ``append(_:_:_:filling:to:)`` does.
    func appendCached(
        _ id: Span<UInt8>, _ key: CacheKey, _ projection: FieldProjection?, to output: inout StreamBuffer
    ) throws(CRUDError) -> CacheOutcome {
        guard let projection else {
            return cache.find(key, id) { record in
                output.append(#","item":"#)
                output.append(record.item)
                append(revision: record.revision, expiresAt: record.expiresAt, to: &output)
            }
        }
        // Nothing that takes long is done while a shard is locked.
        var item: [UInt8] = []
        var revision: [UInt8] = []
        var expiresAt: Int64 = 0
        var isLong = false
        let outcome = cache.find(key, id) { record in
            isLong = record.item.count >= LongItem.leastBytes
            guard !isLong else { return }
            item = Array(record.item)
            revision = Array(record.revision)
            expiresAt = record.expiresAt
        }
        guard case .found = outcome else { return outcome }
        // It is left to another thread, which reads it from its store.
        guard !isLong else { return .miss(nil) }
        var work = Work()
        try append(item: item.span, projection, to: &output, &work)
        revision.withUnsafeBytes { append(revision: $0, expiresAt: expiresAt, to: &output) }
        return outcome
    }

    /// Whether a record exists, as far as that is cached.
    func existsCached(_ id: Span<UInt8>, _ key: CacheKey) -> Bool? {
        switch cache.find(key, id, { _ in }) {
        case .found: true
        case .absent: false
        case .miss: nil
        }
    }

    /// Keeps that there is no such record.
    func fill(_ ticket: CacheTicket, absent id: Span<UInt8>) {
        id.withUnsafeBytes { cache.fill(ticket, CacheRecord(absent: $0)) }
    }

    private func fill(_ ticket: CacheTicket, _ record: FoundRecord, _ item: Span<UInt8>) {
        item.withUnsafeBytes { item in
            cache.fill(
                ticket,
                CacheRecord(id: record.id, item: item, revision: record.revision, expiresAt: record.expiresAt))
        }
    }

    private func append(
        item: Span<UInt8>, _ projection: FieldProjection?, to output: inout StreamBuffer, _ work: inout Work
    ) throws(CRUDError) {
        guard let projection else {
            output.append(#","item":"#)
            return output.append(item)
        }
        guard !projection.isEmpty else { return }
        var projected: [UInt8] = []
        do throws(JSONSyntaxError) {
            try projection.append(of: item, to: &projected, &work)
        } catch {
            throw work.isStopped ? .stopped : Self.invalidItem
        }
        output.append(#","item":"#)
        output.append(projected.span)
    }

    private static let invalidItem = CRUDError(.corrupt, "the stored item is not valid JSON")
}
