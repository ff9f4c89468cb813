package import CRUDPluginKit

// What a log does when it is opened: it reads itself.
extension RecordLog {
    /// What a log is found to be before it is replayed.
    private struct Found {
        /// By number.
        var segments: [(file: File, header: SegmentHeader)] = []
        /// Files without a header.
        var blank: [File] = []
        /// Files whose header is not valid.
        var damaged: [File] = []

        /// A first header that was not written whole leaves a file that is as good as blank.
        mutating func dismissUnused() throws(StorageFailure) {
            for file in damaged where try !file.hasFrames() {
                damaged.removeAll { $0 === file }
                blank.append(file)
            }
        }
    }

    /// Opens the log in a directory, and makes it if the host does not expect one there.
    ///
    /// - Parameters:
    ///   - files: the directory, which nothing else uses.
    ///   - host: learns of progress, and of what an administrator has to know.
    ///   - replay: gets the payload of each commit, in order, and the number of its segment.
    /// - Throws: `corrupt` where the log is damaged, `notFound` where it is not the one that the host expects.
    package static func open(
        _ files: any LogFiles, host: Host,
        replay: (UnsafeRawBufferPointer, UInt64) throws(StorageFailure) -> Void
    ) throws(StorageFailure) -> RecordLog {
        let log = RecordLog(files: files, host: host)
        var found = try log.find()
        if found.segments.isEmpty { try found.dismissUnused() }
        let isEmpty = found.segments.isEmpty && found.damaged.isEmpty
        try host.requireStorage(isEmpty ? nil : found.segments.first?.header.identity ?? 0, in: files.path)
        if isEmpty {
            try log.make(from: found.blank)
        } else {
            try log.recover(found, replay)
        }
        return log
    }

    private func find() throws(StorageFailure) -> Found {
        var found = Found()
        var block = [UInt8](repeating: 0, count: SegmentHeader.bytes)
        for name in try files.names() where name.hasPrefix(Self.prefix) {
            guard let number = Int(name.dropFirst(Self.prefix.count)), number > 0 else { continue }
            nextFile = max(nextFile, number + 1)
            let content = try files.open(name, isNew: false)
            let file = File(name: name, content: content, bytes: try content.size())
            let size = try file.read(into: &block)
            switch block.withUnsafeBytes({ SegmentHeader.read(UnsafeRawBufferPointer(rebasing: $0[..<size])) }) {
            case .header(let header): found.segments.append((file, header))
            case .none: found.blank.append(file)
            case .damaged: found.damaged.append(file)
            case .version(let version):
                throw StorageFailure(
                    .unsupported,
                    "\(path(of: file)) has version \(version) of the format; this crudd reads version "
                        + "\(SegmentHeader.version): use the one that has written it")
            }
        }
        found.segments.sort { $0.header.serial < $1.header.serial }
        for (one, next) in zip(found.segments, found.segments.dropFirst()) {
            if one.header.identity != next.header.identity {
                throw damage(next.file, "belongs to another log than \(one.file.name)")
            }
            if one.header.serial == next.header.serial {
                throw damage(next.file, "is segment \(next.header.serial), as \(one.file.name) is")
            }
        }
        return found
    }

    private func make(from blank: [File]) throws(StorageFailure) {
        identity = History.makeIdentity()
        for file in blank { try files.remove(file.name) }
        try makeFile(atLeast: 0)
        let file = free.removeFirst()
        let header = SegmentHeader(identity: identity, serial: 1, firstCommit: 1, fileBytes: UInt64(file.bytes))
        try file.write(header.stored, at: 0)
        try file.content.sync()
        segments = [Segment(file: file, serial: 1, firstCommit: 1)]
        // Without it nothing can be stored, and that is told then.
        try? makeFile(atLeast: 0)
    }

    // MARK: Recovery

    private func recover(
        _ found: Found, _ replay: (UnsafeRawBufferPointer, UInt64) throws(StorageFailure) -> Void
    ) throws(StorageFailure) {
        guard let newest = found.segments.last else {
            throw damage(found.damaged[0], "has a damaged header")
        }
        identity = newest.header.identity
        let oldest = try oldestSegment(found)
        try checkHeaders(found, newest: newest.header)
        let needed = found.segments.filter { $0.header.serial >= oldest }
        let total = needed.reduce(0) { $0 + $1.file.bytes }
        var done = 0
        for (index, segment) in needed.enumerated() {
            guard segment.header.serial == oldest + UInt64(index) else {
                throw missing(oldest + UInt64(index), found)
            }
            segments.append(
                Segment(
                    file: segment.file, serial: segment.header.serial, firstCommit: segment.header.firstCommit))
            let next = index + 1 < needed.count ? needed[index + 1].header : nil
            let serial = segment.header.serial
            let last = try scan(segment.file, segment.header, next: next) { (frame) throws(StorageFailure) in
                lastSequence = max(lastSequence, frame.header.lastSequence)
                do throws(StorageFailure) {
                    try replay(frame.payload, serial)
                } catch let error where error.status == .corrupt {
                    throw damage(segment.file, "cannot be understood at offset \(frame.offset): \(error.message)")
                }
            }
            done += segment.file.bytes
            host.progress(UInt64(done), of: UInt64(total))
            if next == nil { try makeCertain(segment.file, segment.header, last) }
        }
        guard segments.last?.serial == newest.header.serial else { throw missing(oldest, found) }
        let stale = found.segments.filter { $0.header.serial < oldest }.map(\.file)
        // A file that was being made may not be in the directory on the disk yet.
        try files.sync()
        keepFiles(stale + found.blank + found.damaged)
    }

    /// The number of the oldest segment that is needed.
    private func oldestSegment(_ found: Found) throws(StorageFailure) -> UInt64 {
        // The last segment has no frame yet if the first one was being written; those before it have none either where
        // that was so before, and the next frame did not fit into them.
        var next: SegmentHeader?
        for segment in found.segments.reversed() {
            if let next, segment.header.serial + 1 != next.serial { break }
            var oldest: UInt64?
            _ = try scan(segment.file, segment.header, next: next) { oldest = $0.header.oldestSegment }
            if let oldest { return oldest }
            if segment.header.firstCommit == 1 { return segment.header.serial }
            next = segment.header
        }
        throw missing((next?.serial ?? 1) - 1, found)
    }

    /// A file with a damaged header may be the last segment, which nothing else tells of.
    private func checkHeaders(_ found: Found, newest: SegmentHeader) throws(StorageFailure) {
        let seed = SegmentHeader.seed(identity: identity, serial: newest.serial + 1)
        for file in found.damaged {
            let isUsed = try file.withContent { content in
                Self.firstFrame(in: content, from: SegmentHeader.blockBytes, numbers: newest.firstCommit..., seed: seed)
                    != nil
            }
            if isUsed { throw damage(file, "has a damaged header") }
        }
    }

    // MARK: Frames

    private struct FoundFrame {
        let header: LogFrame.Header
        let payload: UnsafeRawBufferPointer
        let offset: Int
        let end: Int
    }

    /// Where the last frame of a segment lies, and where the next one would.
    private struct LastFrame {
        var range: Range<Int>?
        var nextNumber: UInt64
        var end: Int { range?.upperBound ?? SegmentHeader.blockBytes }
    }

    /// Hands over the frames of a segment.
    ///
    /// - Parameter next: the header of the next segment; nil: this is the last one.
    private func scan(
        _ file: File, _ header: SegmentHeader, next: SegmentHeader?,
        _ body: (FoundFrame) throws(StorageFailure) -> Void
    ) throws(StorageFailure) -> LastFrame {
        guard file.bytes >= Int(clamping: header.fileBytes) else {
            throw damage(file, "has \(file.bytes) bytes instead of \(header.fileBytes)")
        }
        let seed = SegmentHeader.seed(identity: header.identity, serial: header.serial)
        return try file.withContent { (content) throws(StorageFailure) in
            var last = LastFrame(range: nil, nextNumber: header.firstCommit)
            while next.map({ last.nextNumber < $0.firstCommit }) ?? true {
                let (start, number) = (last.end, last.nextNumber)
                guard let frame = LogFrame.read(content, at: start, numbers: number...number, seed: seed) else {
                    let later = number &+ 1
                    let isDamaged =
                        next != nil
                        || later != 0
                            && Self.firstFrame(in: content, from: start, numbers: later..., seed: seed) != nil
                    if isDamaged { throw damage(file, "is damaged at offset \(start)") }
                    break
                }
                last = LastFrame(range: start..<frame.end, nextNumber: number + 1)
                try body(FoundFrame(header: frame.header, payload: frame.payload, offset: start, end: frame.end))
            }
            guard next.map({ last.nextNumber == $0.firstCommit }) ?? true else {
                throw damage(file, "is damaged at offset \(last.end)")
            }
            return last
        }
    }

    /// Where a valid frame with one of the next numbers lies; nil: there is none.
    private static func firstFrame(
        in content: UnsafeRawBufferPointer, from start: Int, numbers: PartialRangeFrom<UInt64>, seed: UInt32
    ) -> Int? {
        // More commits do not fit into a file.
        let (upper, overflows) = numbers.lowerBound.addingReportingOverflow(UInt64(content.count))
        let likely = numbers.lowerBound...(overflows ? .max : upper)
        var offset = start
        while offset + LogFrame.headerBytes <= content.count {
            let number = content.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
            if likely.contains(number),
                LogFrame.read(content, at: offset, numbers: number...number, seed: seed) != nil
            {
                return offset
            }
            offset += LogFrame.alignment
        }
        return nil
    }

    /// Has the disk have what was read, and nothing behind it.
    private func makeCertain(_ file: File, _ header: SegmentHeader, _ last: LastFrame) throws(StorageFailure) {
        if let range = last.range {
            try file.withContent { (content) throws(StorageFailure) in
                try file.content.write(UnsafeRawBufferPointer(rebasing: content[range]), at: range.lowerBound)
            }
        }
        try file.write(header.stored, at: 0)
        if last.end + LogFrame.headerBytes <= file.bytes {
            try file.write([UInt8](repeating: 0, count: LogFrame.headerBytes), at: last.end)
        }
        try file.content.sync()
        end = last.end
        nextCommit = last.nextNumber
    }

    /// Keeps files that are not needed to write over them, the largest first, and removes those that are too many.
    private func keepFiles(_ files: [File]) {
        let usable = files.filter { $0.bytes >= Self.stepBytes }.sorted { $0.bytes > $1.bytes }
        let superfluous = usable.dropFirst(Self.readyFiles) + files.filter { $0.bytes < Self.stepBytes }
        let kept = superfluous.filter { (try? self.files.remove($0.name)) == nil && $0.bytes >= Self.stepBytes }
        free = (usable.prefix(Self.readyFiles) + kept).filter { (try? $0.endFirstFrame()) != nil }
    }

    // MARK: Damage

    private func path(of file: File) -> String { "\(files.path)/\(file.name)" }

    private func damage(_ file: File, _ what: String) -> StorageFailure {
        StorageFailure(.corrupt, "\(path(of: file)) \(what): restore \(files.path) from a backup")
    }

    private func missing(_ serial: UInt64, _ found: Found) -> StorageFailure {
        if let file = found.damaged.first {
            return damage(file, "has a damaged header, and segment \(serial) is missing")
        }
        return StorageFailure(
            .corrupt, "segment \(serial) of the log is missing: restore \(files.path) from a backup")
    }
}

extension RecordLog.File {
    fileprivate func read(into buffer: inout [UInt8]) throws(StorageFailure) -> Int {
        let outcome = buffer.withUnsafeMutableBytes { buffer in
            Result { () throws(StorageFailure) in try content.read(buffer, at: 0) }
        }
        return try outcome.get()
    }

    /// Whether anything stands behind the header.
    fileprivate func hasFrames() throws(StorageFailure) -> Bool {
        try withContent { $0.dropFirst(SegmentHeader.blockBytes).contains { $0 != 0 } }
    }

    /// Has the first frame never be valid: it may be that of the commit which is made next, from before a crash.
    fileprivate func endFirstFrame() throws(StorageFailure) {
        try write([UInt8](repeating: 0, count: LogFrame.headerBytes), at: SegmentHeader.blockBytes)
        try content.sync()
    }

    /// Reads the whole file.
    fileprivate func withContent<Value>(
        _ body: (UnsafeRawBufferPointer) throws(StorageFailure) -> Value
    ) throws(StorageFailure) -> Value {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes, alignment: LogFrame.alignment)
        defer { buffer.deallocate() }
        let size = try content.read(buffer, at: 0)
        guard size == bytes else { throw StorageFailure(.unavailable, "\(name) has changed while it was read") }
        return try body(UnsafeRawBufferPointer(buffer))
    }
}
