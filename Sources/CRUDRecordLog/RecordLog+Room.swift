import CRUDPluginKit

// The files of a log: which one is written next, which are used again, and which are made.
extension RecordLog {
    /// Files are filled with zeros in steps of this, each of which is synced, so that no commit waits for more.
    static let stepBytes = 1 << 20
    private static let maximumSegmentBytes = 32 << 20
    /// How many files are ready to be written over: the next segment, and the one that is reserved.
    static let readyFiles = 2

    /// How large new files are: between a 24th and a 12th of what is needed, at least 1 MiB and at most 32 MiB.
    package var segmentBytes: Int {
        var bytes = Self.stepBytes
        while bytes < Self.maximumSegmentBytes, bytes * 24 < liveBytes { bytes *= 2 }
        return bytes
    }

    /// How much room only what frees room may use.
    private var reservedBytes: Int { segmentBytes + segmentBytes / 4 }

    /// How many bytes can be written to the files that are there.
    private var room: Int {
        free.reduce(current.file.bytes - end) { $0 + $1.bytes - SegmentHeader.blockBytes }
    }

    /// How many bytes the segments take that are needed, without what is left of the last one.
    package var usedBytes: Int { segments.dropLast().reduce(end) { $0 + $1.file.bytes } }

    // MARK: Rewriting

    /// How many bytes of what is needed of the oldest segments a commit has to append, so that the log does not exceed
    /// 2.5 times what is needed, and some megabytes.
    ///
    /// - Parameter bytes: how many the commit has by itself.
    package func rewriteBudget(for bytes: Int) -> Int {
        let (used, live, segment) = (usedBytes, liveBytes, segmentBytes)
        if used <= live / 5 * 9 + 2 * segment { return 0 }
        let isFar = used > live / 10 * 23 + 4 * segment
        return min(isFar ? max(256 << 10, 8 * bytes) : max(16 << 10, 3 * bytes), segment / 4)
    }

    /// Whether what was removed has left less room than is reserved, and rewriting would gain enough to be worth it.
    package var isShortOfRoom: Bool { room < reservedBytes - segmentBytes / 8 && garbageBytes > segmentBytes / 4 }

    /// How many bytes a commit may have that is written to the segment that is being written.
    package var leftBytes: Int { max(0, current.file.bytes - end - LogFrame.bytes(ofPayload: LogFrame.alignment)) }

    /// How many bytes would be gained if nothing was in the log that is not needed.
    package var garbageBytes: Int { usedBytes - liveBytes }

    /// Whether there is room for a commit of so many bytes.
    package func hasRoom(for bytes: Int, _ purpose: Purpose) -> Bool {
        place(LogFrame.bytes(ofPayload: bytes), purpose) != nil
    }

    private var fullNotice: String {
        "there is no room in \(files.path): records can be deleted, and stored in the room that they leave"
    }

    /// Has the administrator know that something was refused.
    package func reportLackOfRoom() { report(fullNotice) }

    // MARK: The next frame

    /// Where a frame of so many bytes is written, in a file that is made if need be.
    ///
    /// - Throws: `noSpace` where there is no room for it.
    func target(for bytes: Int, _ purpose: Purpose) throws(StorageFailure) -> Target {
        // One for the frame, and one for what must be left.
        for _ in 0..<Self.readyFiles + 1 {
            if let target = place(bytes, purpose) { return target }
            try makeFile(atLeast: bytes + SegmentHeader.blockBytes)
        }
        guard let target = place(bytes, purpose) else {
            throw StorageFailure(.noSpace, "there is no room for \(bytes) bytes in \(files.path)")
        }
        return target
    }

    /// Where a frame may be written in the files that are there.
    private func place(_ bytes: Int, _ purpose: Purpose) -> Target? {
        let (current, left) = (current, current.file.bytes - end)
        if bytes <= left {
            guard purpose == .frees || room - bytes >= reservedBytes else { return nil }
            return Target(segment: current, offset: end, isNew: false)
        }
        guard let file = free.first(where: { $0.bytes - SegmentHeader.blockBytes >= bytes }),
            purpose == .frees || room - left - bytes >= reservedBytes
        else { return nil }
        return Target(
            segment: Segment(file: file, serial: current.serial + 1, firstCommit: nextCommit),
            offset: SegmentHeader.blockBytes, isNew: true)
    }

    // MARK: Files

    /// Keeps the files of segments that are not needed any more, or removes them.
    func release(before serial: UInt64) {
        while segments.count > 1, let oldest = segments.first, oldest.serial < serial {
            segments.removeFirst()
            keep(oldest.file)
        }
    }

    private func keep(_ file: File) {
        free.append(file)
        guard free.count > Self.readyFiles else { return }
        // Files of other sizes are left from when more was needed, or less.
        let superfluous = free.firstIndex { $0.bytes != segmentBytes } ?? free.startIndex
        // One that cannot be removed is used again.
        if (try? files.remove(free[superfluous].name)) != nil { free.remove(at: superfluous) }
    }

    /// Makes a step towards another file, so that it is there when the last segment is full.
    func prepareSpare() {
        guard free.count < Self.readyFiles, !isDiskFull else { return }
        let goal = free.isEmpty ? segmentBytes : 2 * end - current.file.bytes / 2
        guard (spare?.bytes ?? 0) < min(goal, segmentBytes) else { return }
        // If it fails, so it does when the file is needed.
        try? extendSpare(to: segmentBytes)
    }

    /// Makes a file, or what is left to do of one.
    func makeFile(atLeast bytes: Int) throws(StorageFailure) {
        isDiskFull = false
        let goal = max(segmentBytes, (bytes + Self.stepBytes - 1) / Self.stepBytes * Self.stepBytes)
        let count = free.count
        while free.count == count { try extendSpare(to: goal) }
    }

    /// Fills a further step of a file with zeros.
    private func extendSpare(to goal: Int) throws(StorageFailure) {
        let file: File
        if let spare { file = spare } else { file = try newFile() }
        spare = file
        do throws(StorageFailure) {
            if file.bytes < goal {
                try file.write([UInt8](repeating: 0, count: Self.stepBytes), at: file.bytes)
                try file.content.sync()
                file.bytes += Self.stepBytes
            }
            guard file.bytes >= goal else { return }
            try files.sync()
        } catch {
            // Others may need its room more.
            try? files.remove(file.name)
            spare = nil
            isDiskFull = true
            throw error
        }
        spare = nil
        free.append(file)
    }

    private func newFile() throws(StorageFailure) -> File {
        let digits = String(nextFile)
        let name = Self.prefix + String(repeating: "0", count: max(0, 6 - digits.count)) + digits
        nextFile += 1
        return File(name: name, content: try files.open(name, isNew: true), bytes: 0)
    }

    static var prefix: String { "segment-" }

    // MARK: Idle

    /// Does what a commit would have to do.
    package func idle() {
        try? resolve()
        isDiskFull = false
        if room < reservedBytes || spare != nil && free.count < Self.readyFiles { try? makeFile(atLeast: 0) }
        if notice == fullNotice, room >= reservedBytes { report("") }
    }
}
