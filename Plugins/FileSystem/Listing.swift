import CRUDPluginKit
import Glibc

/// The ids of a collection in order, though a directory has none.
///
/// Nothing is kept between calls: a scan over the directory's names decodes each and keeps the first of the wanted
/// range, at most twice as many as are asked for, sorting them whenever there are so many. A page of a scan by id
/// therefore takes time that grows with all names of the directory, and memory that grows with the page.
struct Listing {
    /// The most ids that are kept for a page, about 10 MB of them.
    static let maximumIDs = 1 << 16

    let collection: FileSystemCollection
    let directory: Directory
    let foreignFiles: ForeignFiles

    /// The first ids of a range in order, or in reverse, at most `limit`, and whether the range has no more.
    func first(
        _ limit: Int, in range: IDRange, isReversed: Bool, _ heartbeat: inout Heartbeat
    ) throws(StorageFailure) -> (ids: [[UInt8]], isLast: Bool) {
        var ids: [[UInt8]] = []
        var isLast = true
        func cut() {
            ids.sort { isReversed ? $1.lexicographicallyPrecedes($0) : $0.lexicographicallyPrecedes($1) }
            if ids.count > limit {
                ids.removeLast(ids.count - limit)
                isLast = false
            }
        }
        try scan(&heartbeat) { _, id in
            guard range.contains(id) else { return }
            ids.append(id)
            if ids.count == 2 * limit { cut() }
        }
        cut()
        return (ids, isLast)
    }

    /// Hands over the id of every record, in no order. Anything but a record's file is reported.
    func scan(
        _ heartbeat: inout Heartbeat, _ body: (Directory.Entry, [UInt8]) throws(StorageFailure) -> Void
    ) throws(StorageFailure) {
        try directory.scan { (entry) throws(StorageFailure) in
            try heartbeat.step()
            if let id = try id(of: entry) { try body(entry, id) }
        }
    }

    /// The id of a record by its file, or by a directory in its place; nil: that is none of the collection. Anything
    /// but a record's file is reported.
    func id(of entry: Directory.Entry) throws(StorageFailure) -> [UInt8]? {
        switch (FileName(entry.name), entry.kind) {
        case (.record(collection.format, .name(let id)), S_IFREG), (.record(collection.format, .name(let id)), S_IFDIR):
            return id
        case (.record(collection.format, .shortened), S_IFREG): return try storedID(entry)
        case (.record, S_IFREG), (.temporary, S_IFREG): return nil
        default:
            foreignFiles.report(entry.name, in: directory)
            return nil
        }
    }

    /// The id of a file whose name is shortened; nil if it has gone, or its id has another name.
    private func storedID(_ entry: Directory.Entry) throws(StorageFailure) -> [UInt8]? {
        guard let file = try RecordFile.open(entry.text, in: directory, foreignFiles) else { return nil }
        if let id = try file.id(),
            FileName.record(EncodedName(id.span.bytes), collection.format).utf8.elementsEqual(entry.name)
        {
            return id
        }
        foreignFiles.report(entry.name, in: directory)
        return nil
    }
}
