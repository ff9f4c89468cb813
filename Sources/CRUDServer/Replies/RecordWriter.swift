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
    }

    private enum Outcome {
        case nothing, record
        /// Decoding it takes long.
        case long
        /// The record cannot be written. (Indirect: an error is large, and this is looked at for each record.)
        indirect case failed(CRUDError)
    }

    @exclusivity(unchecked) private var state = State()
    /// How long an item may be: no reply can be longer than a frame, and so no item in it.
    var maximumItemBytes: Int

    init(maximumItemBytes: Int) {
        self.maximumItemBytes = maximumItemBytes
    }

    /// Reads a record at once, if its store can, and appends it without the closing brace of the result.
    ///
    /// - Returns: false if the store cannot read without waiting, or the item takes long to decode; nothing has been
    ///   appended then.
    /// - Throws: `record_not_found`, `corrupt`, and what the store throws.
    func read(
        _ id: Span<UInt8>, in collection: Collection, _ projection: FieldProjection?, into output: inout StreamBuffer
    ) throws(CRUDError) -> Bool {
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
        case .nothing: throw .recordNotFound(id.withUnsafeBufferPointer { Array($0) }, in: collection.name)
        case .failed(let error):
            let id = id.withUnsafeBufferPointer { Array($0) }
            if error.code == .corrupt { collection.backend.note(corrupt: id, in: collection.stored) }
            throw error.about(id, in: collection.name)
        }
    }

    func visit(_ record: FoundRecord) -> Bool {
        guard let output = state.output else { return false }
        guard state.codec.keepsText || record.item.count < LongItem.leastBytes else {
            state.outcome = .long
            return true
        }
        do throws(CRUDError) {
            try append(record.item, record.revision, state.codec, state.projection, to: &output.pointee)
            state.outcome = .record
        } catch {
            state.outcome = .failed(error)
        }
        return true
    }

    /// Appends `,"item":…,"revision":…` of a record.
    ///
    /// - Throws: `corrupt` if the item cannot be decoded.
    func append(
        _ stored: UnsafeRawBufferPointer, _ revision: UnsafeRawBufferPointer, _ codec: Codec,
        _ projection: FieldProjection?, to output: inout StreamBuffer
    ) throws(CRUDError) {
        // The buffer is valid during this call.
        let stored = unsafe stored.bindMemory(to: UInt8.self).span
        if codec.keepsText {
            guard (try? state.scanner.document(stored)) != nil else { throw Self.invalidItem }
            try append(item: stored, projection, to: &output)
        } else {
            var item: [UInt8] = []
            try codec.decode(stored: stored, into: &item, maximumBytes: maximumItemBytes)
            try append(item: item.span, projection, to: &output)
        }
        output.append(#","revision":""#)
        output.append(escaped: revision)
        output.append(UInt8(ascii: "\""))
    }

    private func append(
        item: Span<UInt8>, _ projection: FieldProjection?, to output: inout StreamBuffer
    ) throws(CRUDError) {
        guard let projection else {
            output.append(#","item":"#)
            return output.append(item)
        }
        guard !projection.isEmpty else { return }
        var projected: [UInt8] = []
        do throws(JSONSyntaxError) {
            try projection.append(of: item, to: &projected)
        } catch {
            throw Self.invalidItem
        }
        output.append(#","item":"#)
        output.append(projected.span)
    }

    private static let invalidItem = CRUDError(.corrupt, "the stored item is not valid JSON")
}
