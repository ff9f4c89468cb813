import CRUDPluginKit
import Glibc

/// The ids of a collection in order, though a directory has none.
///
/// Nothing is kept between calls: a walk over the directory's names decodes each and keeps the least of the wanted range,
/// at most twice as many as are asked for, sorting them whenever there are so many. A page of a walk by id therefore
/// takes time that grows with all names of the directory, and memory that grows with the page.
struct Listing {
    /// The most ids that are kept for a page, about 10 MB of them.
    static let maximumIDs = 1 << 16

    let collection: FileSystemCollection
    let directory: Directory
    let foreignFiles: ForeignFiles

    /// The least ids of a range in order, at most `limit`, and whether the range has no more.
    func first(_ limit: Int, in range: IDRange) throws(StorageFailure) -> (ids: [[UInt8]], isLast: Bool) {
        var ids: [[UInt8]] = []
        var isLast = true
        func cut() {
            ids.sort { $0.lexicographicallyPrecedes($1) }
            if ids.count > limit {
                ids.removeLast(ids.count - limit)
                isLast = false
            }
        }
        try walk { _, id in
            guard range.contains(id) else { return }
            ids.append(id)
            if ids.count == 2 * limit { cut() }
        }
        cut()
        return (ids, isLast)
    }

    /// Hands over the id of every record, in no order. What is no record's file is reported.
    func walk(_ body: (Directory.Entry, [UInt8]) throws(StorageFailure) -> Void) throws(StorageFailure) {
        try directory.walk { (entry) throws(StorageFailure) in
            guard entry.kind == S_IFREG else {
                foreignFiles.report(entry.name, in: directory)
                return true
            }
            switch FileName(entry.name) {
            case .record(collection.format, .name(let id)): try body(entry, id)
            case .record(collection.format, .shortened): if let id = try id(entry) { try body(entry, id) }
            case .record, .temporary: break
            case .foreign: foreignFiles.report(entry.name, in: directory)
            }
            return true
        }
    }

    /// The id of a file whose name is shortened; nil if it has gone or says nothing that fits its name.
    private func id(_ entry: Directory.Entry) throws(StorageFailure) -> [UInt8]? {
        guard let file = try RecordFile.open(entry.text, in: directory, foreignFiles) else { return nil }
        if let id = try file.id(),
            FileName.record(EncodedName(id), collection.format).utf8.elementsEqual(entry.name)
        {
            return id
        }
        foreignFiles.report(entry.name, in: directory)
        return nil
    }
}
