import CRUDPluginKit
import Glibc

/// Reads files as they are now; it holds no snapshot between calls, so that what people edit is seen at once.
final class FileSystemReader: StorageReader {
    private let root: Root
    private let host: Host
    private let foreignFiles: ForeignFiles

    init(root: Root, host: Host, foreignFiles: ForeignFiles) {
        self.root = root
        self.host = host
        self.foreignFiles = foreignFiles
    }

    func close() {}

    func read(_ request: borrowing ReadRequest, from collection: FileSystemCollection) throws(StorageFailure) {
        guard let directory = try root.directory(of: collection) else { return }
        for position in 0..<request.count {
            let record = try record(
                request.id(at: position).bytes, of: collection, in: directory, request.call, request.wantsItems)
            guard let (metadata, item) = record else { continue }
            let isWanted = request.emit(
                position, item: item.span.bytes, revision: metadata.revision.span.bytes,
                expiresAt: metadata.expiresAt, sequence: metadata.sequence)
            guard isWanted else { return }
        }
    }

    func scan(_ request: borrowing ScanRequest, of collection: FileSystemCollection) throws(StorageFailure) {
        guard let directory = try root.directory(of: collection) else { return }
        let listing = Listing(collection: collection, directory: directory, foreignFiles: foreignFiles)
        var heartbeat = Heartbeat(request.call, host)
        var range = request.ids
        var limit = min(request.limit ?? .max, Listing.maximumIDs)
        while true {
            let (ids, isLast) = try listing.first(limit, in: range, isReversed: request.isReversed, &heartbeat)
            for id in ids {
                try heartbeat.step()
                guard try emit(id, of: collection, in: directory, to: request) else { return }
            }
            guard !isLast, let last = ids.last else { return }
            range = range.resumed(after: last, isReversed: request.isReversed)
            // Some have expired or gone meanwhile. Each listing reads all names, so that the next one is not short.
            limit = Listing.maximumIDs
        }
    }

    /// Emits a record, if it is still there, and returns whether further ones are wanted.
    private func emit(
        _ id: [UInt8], of collection: FileSystemCollection, in directory: Directory, to request: borrowing ScanRequest
    ) throws(StorageFailure) -> Bool {
        let record = try record(id.span.bytes, of: collection, in: directory, request.call, request.wantsItems)
        guard let (metadata, item) = record else { return true }
        return request.emit(
            id: id.span.bytes, item: item.span.bytes, revision: metadata.revision.span.bytes,
            expiresAt: metadata.expiresAt, sequence: metadata.sequence)
    }

    /// What there is of a record; nil if it is not there. One whose file cannot be read has an empty item, and so is
    /// corrupt by itself.
    private func record(
        _ id: RawSpan, of collection: FileSystemCollection, in directory: Directory, _ call: CallContext,
        _ wantsItem: Bool
    ) throws(StorageFailure) -> (RecordFile.Metadata, item: [UInt8])? {
        do {
            guard let file = try RecordFile.open(id, of: collection, in: directory, foreignFiles) else { return nil }
            let metadata = try file.metadata()
            if call.hasExpired(metadata.expiresAt) { return nil }
            return (metadata, try wantsItem ? file.item() : [])
        } catch let error where error.status == .corrupt {
            foreignFiles.report(error)
            return (RecordFile.unreadable, [])
        }
    }

    func count(
        _ request: borrowing CountRequest, in collection: FileSystemCollection
    ) throws(StorageFailure) -> UInt64 {
        guard let directory = try root.directory(of: collection) else { return 0 }
        let listing = Listing(collection: collection, directory: directory, foreignFiles: foreignFiles)
        var heartbeat = Heartbeat(request.call, host)
        let range = request.range.ids
        // Files are opened only where one may have expired.
        let mayExpire = try directory.mayHaveExpiringFiles()
        var count: UInt64 = 0
        try listing.scan(&heartbeat) { (entry, id) throws(StorageFailure) in
            guard range.isUnbounded || range.contains(id) else { return }
            if mayExpire {
                do throws(StorageFailure) {
                    guard let file = try RecordFile.open(entry.text, in: directory, foreignFiles),
                        try !request.call.hasExpired(file.expiresAt())
                    else { return }
                } catch let error where error.status == .corrupt {
                    foreignFiles.report(error)
                }
            }
            count += 1
        }
        return count
    }
}
