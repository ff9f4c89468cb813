package import CRUDPluginKit

/// An append-only log of commits, from which their author can make them again after a crash.
///
/// **Layout.** A log is a directory of segments: files `segment-NUMBER` that have been filled with zeros, whose size
/// never changes, and that are written over again and again, since a sync of what lies on blocks that are there takes
/// half the time of one that appends. What a file is at the moment is in its header (`SegmentHeader`): segment number
/// n of the log, which begins with commit number c. Behind it follow frames (`LogFrame`), one for each commit,
/// without gaps. A commit is one write of one frame, and one sync. When a frame does not fit into what is left of the
/// segment, another file becomes the next one, by a header that is written together with the frame.
///
/// **What is valid.** The checksum of a frame begins with the identity of the log and the number of the segment, and
/// the frame has the number that follows that of the one before. So nothing that an earlier use of the file has left
/// is ever valid, nor what a client has stored that looks like a frame.
///
/// **Recovery.** Segments are replayed in order, up to the first frame that is not valid. In the last segment that is
/// the end: a commit that was being written when the process or the machine ended, and that no client was told of.
/// Unless a later frame is valid: a commit is only written when the one before is on the disk, so that this one has
/// been damaged since, which is reported with file and offset instead. So it is with any other segment, which must be
/// valid up to the commit with which the next one begins. What was found is then made certain: the last frame is
/// written and synced again, as the kernel may have it in memory only, and what follows it is made invalid.
///
/// **Failures.** After a failed write or sync it is unknown what the disk has, and a second sync may succeed without
/// the disk having anything: so the header of the frame is written over with zeros and synced, before anything else
/// is committed. If that succeeds, nothing was committed, for certain. If not, the outcome is unknown, and every
/// further commit is refused until it does succeed.
///
/// **Room.** The log is a queue. Its author appends, with each commit, some of what is still needed of the
/// oldest segment (``rewriteBudget(for:)`` says how much), and tells with the commit which segment is the oldest that
/// is needed from then on. The files of those before it are used again. So no commit waits for more than its share,
/// and a note that something was removed needs no care: when it has become the oldest, what it removed is gone.
///
/// **A full disk.** Files are made before they are needed. What needs room (``Purpose/grows``) must leave as much as
/// one segment and a quarter, which only what frees room may use. That is enough to rewrite any segment, and each
/// rewriting gains what in it was not needed any more: so whatever is removed makes room for something else, in the
/// files that are there.
package final class RecordLog {
    /// A file of which the log is made.
    final class File {
        let name: String
        let content: any LogFile
        var bytes: Int

        init(name: String, content: any LogFile, bytes: Int) {
            self.name = name
            self.content = content
            self.bytes = bytes
        }
    }

    /// A file that is needed.
    struct Segment {
        let file: File
        let serial: UInt64
        let firstCommit: UInt64
    }

    /// What a commit does to the room in the log.
    package enum Purpose: Sendable { case grows, frees }

    let files: any LogFiles
    let host: Host
    /// A random number that tells this log from others.
    package internal(set) var identity: UInt64 = 0
    /// The greatest sequence number that a commit has had.
    package internal(set) var lastSequence: UInt64 = 0
    /// How many bytes of what is in the log are still needed; the author of the commits keeps it up to date.
    package var liveBytes = 0

    /// Those that are needed, the oldest first. The last one is being written. Never empty once the log is open.
    var segments: [Segment] = []
    /// Where the next frame begins in the last segment.
    var end = SegmentHeader.blockBytes
    var nextCommit: UInt64 = 1
    /// Files that are not needed and may be written over.
    var free: [File] = []
    /// A file that is being filled with zeros.
    var spare: File?
    /// The number of the next file that is made.
    var nextFile = 1
    /// Whether nothing of the last commit was written, as no file had room for it.
    package private(set) var hadNoRoom = false
    /// Whether the disk has refused another file lately.
    var isDiskFull = false
    /// What has been reported to the host.
    var notice = ""
    private var uncertain: Uncertain?

    /// A frame that was not written, or not synced.
    private struct Uncertain {
        let file: File
        let offset: Int
        /// Whether the segment's header was written with it.
        let isNew: Bool
        let failure: StorageFailure
    }

    init(files: any LogFiles, host: Host) {
        self.files = files
        self.host = host
    }

    var current: Segment { segments[segments.count - 1] }

    /// The number of the segment that is being written.
    package var currentSegment: UInt64 { current.serial }

    /// The number of the oldest segment whose file cannot be written over.
    package var oldestSegment: UInt64 { segments[0].serial }

    // MARK: Committing

    /// Returns once the disk has a commit.
    ///
    /// - Parameters:
    ///   - frame: what is committed.
    ///   - purpose: whether it may use the room that is reserved.
    ///   - lastSequence: the greatest sequence number in it.
    ///   - oldestSegment: the oldest one of which something is needed once this is committed; nil: none but the one
    ///     that this commit is written to.
    /// - Returns: the number of the segment that has it.
    /// - Throws: ``StorageFailure`` if nothing was committed; `outcomeUnknown` if it may have been.
    package func commit(
        _ frame: LogFrame, _ purpose: Purpose, lastSequence: UInt64, oldestSegment: UInt64?
    ) throws(StorageFailure) -> UInt64 {
        hadNoRoom = false
        try resolve()
        guard frame.payloadBytes <= Self.maximumPayloadBytes else {
            throw StorageFailure(.unsupported, "a batch of \(frame.payloadBytes) bytes is too long for the log")
        }
        hadNoRoom = true
        let target = try target(for: frame.bytes, purpose)
        hadNoRoom = false
        let sequence = max(lastSequence, self.lastSequence)
        let header = LogFrame.Header(
            number: nextCommit, oldestSegment: oldestSegment ?? target.segment.serial, lastSequence: sequence)
        do throws(StorageFailure) {
            try write(frame, header, to: target)
        } catch {
            uncertain = Uncertain(
                file: target.segment.file, offset: target.offset, isNew: target.isNew, failure: error)
            do throws(StorageFailure) {
                try resolve()
            } catch let second {
                throw StorageFailure(.outcomeUnknown, "\(error.message); \(second.message)")
            }
            throw error
        }
        if target.isNew {
            free.removeAll { $0 === target.segment.file }
            segments.append(target.segment)
        }
        end = target.offset + frame.bytes
        nextCommit += 1
        self.lastSequence = sequence
        if purpose == .grows { report("") }
        release(before: header.oldestSegment)
        prepareSpare()
        return target.segment.serial
    }

    /// Where a frame is written.
    struct Target {
        let segment: Segment
        let offset: Int
        let isNew: Bool
    }

    /// What fits into the four bytes of a frame's header, with room for everything around it.
    private static let maximumPayloadBytes = 1 << 31

    private func write(
        _ frame: LogFrame, _ header: LogFrame.Header, to target: Target
    ) throws(StorageFailure) {
        let (segment, file) = (target.segment, target.segment.file)
        if target.isNew {
            let header = SegmentHeader(
                identity: identity, serial: segment.serial, firstCommit: segment.firstCommit,
                fileBytes: UInt64(file.bytes))
            try file.write(header.stored, at: 0)
        }
        let seed = SegmentHeader.seed(identity: identity, serial: segment.serial)
        try file.content.write(frame.sealed(header, seed: seed), at: target.offset)
        try file.content.sync()
    }

    /// Makes certain that a commit that has failed is not in the log.
    ///
    /// - Throws: `unavailable` while that cannot be done.
    package func resolve() throws(StorageFailure) {
        guard let uncertain else { return }
        do throws(StorageFailure) {
            if uncertain.isNew {
                try uncertain.file.write([UInt8](repeating: 0, count: SegmentHeader.bytes), at: 0)
            }
            try uncertain.file.write([UInt8](repeating: 0, count: LogFrame.headerBytes), at: uncertain.offset)
            try uncertain.file.content.sync()
        } catch {
            let text = "writes are refused until the log can be written again, since \(uncertain.failure.message)"
            report(text)
            throw StorageFailure(.unavailable, text)
        }
        self.uncertain = nil
        report("")
    }

    /// Leaves a notice with the host, and a line in the log; empty: it takes the notice back.
    func report(_ text: String) {
        if text == notice { return }
        notice = text
        if text.isEmpty {
            host.log(.info, "records can be stored in \(files.path) again")
        } else {
            host.log(.warning, text)
        }
        host.state(.up, text)
    }
}

extension RecordLog.File {
    func write(_ bytes: [UInt8], at offset: Int) throws(StorageFailure) {
        // The bytes stay in place until the closure returns.
        let outcome = bytes.withUnsafeBytes { bytes in
            Result { () throws(StorageFailure) in try content.write(bytes, at: offset) }
        }
        try outcome.get()
    }
}
