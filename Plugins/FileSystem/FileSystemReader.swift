import CRUDPluginKit
import Glibc

/// Reads files as they are now; it holds no view between calls, so that what people edit is seen at once.
final class FileSystemReader: StorageReader {
    private let root: Root
    private let foreignFiles: ForeignFiles

    init(root: Root, foreignFiles: ForeignFiles) {
        self.root = root
        self.foreignFiles = foreignFiles
    }

    func close() {}

    func read(_ request: borrowing ReadRequest, from collection: FileSystemCollection) throws(StorageFailure) {
        guard let directory = try root.directory(of: collection) else { return }
        for position in 0..<request.count {
            let id = request.id(at: position)
            guard let file = try RecordFile.open(id, of: collection, in: directory, foreignFiles) else { continue }
            let revision = try file.revision()
            let item = try request.wantsItems ? file.item() : []
            guard request.emit(position, item: item.span.bytes, revision: revision.span.bytes) else { return }
        }
    }

    func scan(_ request: borrowing ScanRequest, of collection: FileSystemCollection) throws(StorageFailure) {
        guard let directory = try root.directory(of: collection) else { return }
        let listing = Listing(collection: collection, directory: directory, foreignFiles: foreignFiles)
        var range = IDRange(after: request.after, prefix: request.prefix)
        var position = 0
        var remaining = request.limit ?? .max
        while remaining > 0 {
            let (ids, isLast) = try listing.first(min(remaining, Listing.maximumIDs), in: range)
            for id in ids {
                // Files may go meanwhile; then another page makes up for them.
                guard let file = try RecordFile.open(id, of: collection, in: directory, foreignFiles) else { continue }
                let revision = try file.revision()
                let item = try request.wantsItems ? file.item() : []
                guard
                    request.emit(
                        position, id: id.span.bytes, item: item.span.bytes, revision: revision.span.bytes)
                else { return }
                position += 1
                remaining -= 1
            }
            guard !isLast, let last = ids.last else { return }
            range = range.after(last)
        }
    }

    func count(
        prefix: UnsafeRawBufferPointer, in collection: FileSystemCollection
    ) throws(StorageFailure) -> UInt64 {
        guard let directory = try root.directory(of: collection) else { return 0 }
        let listing = Listing(collection: collection, directory: directory, foreignFiles: foreignFiles)
        var count: UInt64 = 0
        try listing.walk { _, id in if id.starts(with: prefix) { count += 1 } }
        return count
    }
}
