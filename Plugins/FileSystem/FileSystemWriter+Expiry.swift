import CRUDPluginKit

extension FileSystemWriter {
    /// Removes files whose records have expired, then syncs their directory once.
    func removeExpired(_ request: borrowing ExpiryRequest<FileSystemCollection>) throws(StorageFailure) -> Int64? {
        try root.checkSyncs()
        let collection = request.collection
        guard let directory = try root.directory(of: collection), try directory.mayHaveExpiringFiles() else {
            return nil
        }
        let queue = queue(of: collection)
        var heartbeat = Heartbeat(request.call, host, stepsPerReading: 1)
        let listing = Listing(collection: collection, directory: directory, foreignFiles: foreignFiles)
        try queue.read(listing, &heartbeat, now: request.now)
        var removed: [[UInt8]] = []
        while removed.count < request.limit, let entry = queue.first, entry.expiresAt <= request.now {
            heartbeat.advance()
            queue.removeFirst()
            do throws(StorageFailure) {
                let sequence = request.firstSequence + UInt64(removed.count)
                if try remove(entry.id, of: collection, in: directory, queue, sequence: sequence, request.call) {
                    removed.append(entry.id)
                }
            } catch {
                queue.push(entry.id, expiresAt: entry.expiresAt)
                // What has been removed is told.
                if removed.isEmpty { throw error }
                break
            }
        }
        if !removed.isEmpty, syncs {
            do throws(StorageFailure) {
                try root.sync(directory)
            } catch {
                throw StorageFailure(.outcomeUnknown, error.message)
            }
        }
        for (index, id) in removed.enumerated() { request.emit(index, id: id.span.bytes) }
        return queue.nextExpiry(now: request.now)
    }

    /// Removes the file of a record if the record has expired, and returns whether it did.
    private func remove(
        _ id: [UInt8], of collection: FileSystemCollection, in directory: Directory, _ queue: ExpiryQueue,
        sequence: UInt64, _ call: CallContext
    ) throws(StorageFailure) -> Bool {
        do throws(StorageFailure) {
            guard let file = try RecordFile.open(id.span.bytes, of: collection, in: directory, foreignFiles) else {
                return false
            }
            let expiresAt = try file.expiresAt()
            guard call.hasExpired(expiresAt) else {
                if expiresAt != 0 { queue.push(id, expiresAt: expiresAt) }
                return false
            }
        } catch let error where error.status == .corrupt {
            foreignFiles.report(error)
            return false
        }
        try sequences.reserve(sequence)
        return try directory.removeFile(FileName.record(EncodedName(id.span.bytes), collection.format))
    }
}
