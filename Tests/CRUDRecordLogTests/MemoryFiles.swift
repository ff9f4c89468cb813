import CRUDPluginABI
import CRUDPluginKit
import CRUDRecordLog
import CRUDTestSupport
import Glibc

/// Files as a kernel and a disk have them: what was written and not synced is on the disk or not when the machine
/// crashes, each sector by itself. Calls fail when they are told to.
final class MemoryFiles: LogFiles {
    /// What is told of a disk.
    struct Fault {
        /// Of the calls that change something, from 1.
        var calls: ClosedRange<Int>
        var code = EIO
        /// Whether the process ends with the first one instead.
        var kills = false
    }

    fileprivate final class Content {
        var bytes: [UInt8] = []
        var durable: [UInt8] = []
        var unsynced: [(offset: Int, bytes: [UInt8])] = []
    }

    let path = "/log"
    private var contents: [String: Content] = [:]
    private var durableContents: [String: Content] = [:]
    private var random: SeededGenerator
    var fault: Fault?
    /// How many bytes all files may have.
    var space = Int.max
    private(set) var calls = 0
    private(set) var isKilled = false

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    /// What is there after the power has been cut.
    ///
    /// - Parameter isLucky: whether each sector is on the disk; nil: chance decides.
    func crashed(isLucky: Bool? = nil, seed: UInt64) -> MemoryFiles {
        let files = MemoryFiles(seed: seed)
        files.space = space
        for (name, content) in contents {
            guard durableContents[name] != nil || isLucky ?? Bool.random(using: &random) else { continue }
            let copy = Content()
            copy.durable = content.durable
            for write in content.unsynced {
                for start in stride(from: 0, to: write.bytes.count, by: 512) {
                    guard isLucky ?? Bool.random(using: &random) else { continue }
                    let sector = write.bytes[start..<min(start + 512, write.bytes.count)]
                    copy.durable.write(sector, at: write.offset + start)
                }
            }
            copy.bytes = copy.durable
            files.contents[name] = copy
            files.durableContents[name] = copy
        }
        return files
    }

    /// Another process has the files after the one that used them was killed.
    func restart() {
        isKilled = false
        fault = nil
    }

    /// Changes what a file has.
    func edit(_ name: String, _ body: (inout [UInt8]) -> Void) {
        guard let content = contents[name] else { return }
        body(&content.bytes)
        content.durable = content.bytes
    }

    func bytes(of name: String) -> [UInt8] { contents[name]?.bytes ?? [] }

    var totalBytes: Int { contents.values.reduce(0) { $0 + $1.bytes.count } }

    /// Counts a call that changes something.
    ///
    /// - Returns: what it fails with.
    fileprivate func failure(_ action: String) -> StorageFailure? {
        if isKilled { return StorageFailure(.internal, "killed") }
        calls += 1
        guard let fault, fault.calls.contains(calls) else { return nil }
        if fault.kills { isKilled = true }
        return StorageFailure(errno: fault.code, "cannot \(action)")
    }

    /// A process that has been killed does nothing.
    fileprivate func requireLife() throws(StorageFailure) {
        if isKilled { throw StorageFailure(.internal, "killed") }
    }

    fileprivate func chance() -> Bool { Bool.random(using: &random) }

    // MARK: LogFiles

    func names() throws(StorageFailure) -> [String] { Array(contents.keys) }

    func open(_ name: String, isNew: Bool) throws(StorageFailure) -> any LogFile {
        if isNew {
            if let failure = failure("make \(name)") { throw failure }
            contents[name] = Content()
        }
        guard let content = contents[name] else { throw StorageFailure(.notFound, name) }
        return OpenFile(content, in: self)
    }

    func remove(_ name: String) throws(StorageFailure) {
        if let failure = failure("remove \(name)") { throw failure }
        contents[name] = nil
    }

    func sync() throws(StorageFailure) {
        if let failure = failure("sync the directory") { throw failure }
        durableContents = contents
    }
}

private final class OpenFile: LogFile {
    private let content: MemoryFiles.Content
    private let files: MemoryFiles

    init(_ content: MemoryFiles.Content, in files: MemoryFiles) {
        self.content = content
        self.files = files
    }

    func size() throws(StorageFailure) -> Int { content.bytes.count }

    func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(StorageFailure) -> Int {
        let part = content.bytes.dropFirst(offset).prefix(buffer.count)
        buffer.copyBytes(from: part)
        return part.count
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(StorageFailure) {
        try files.requireLife()
        let failure = files.failure("write")
        let growth = max(0, offset + bytes.count - content.bytes.count)
        guard files.totalBytes + growth <= files.space else { throw StorageFailure(errno: ENOSPC, "cannot write") }
        // One that fails may have written some.
        let written = failure == nil ? bytes.count : files.chance() ? bytes.count / 2 : 0
        content.bytes.write(bytes.prefix(written), at: offset)
        content.unsynced.append((offset, Array(bytes.prefix(written))))
        if let failure { throw failure }
    }

    func sync() throws(StorageFailure) {
        try files.requireLife()
        let failure = files.failure("sync")
        if files.isKilled, let failure { throw failure }
        if let failure {
            // Of what has failed the kernel knows nothing any more; some of it may be on the disk.
            if files.chance() { content.unsynced = content.unsynced.filter { _ in files.chance() } }
            for write in content.unsynced where files.chance() {
                content.durable.write(write.bytes[...], at: write.offset)
            }
            content.unsynced = []
            throw failure
        }
        for write in content.unsynced { content.durable.write(write.bytes[...], at: write.offset) }
        content.unsynced = []
    }
}

extension [UInt8] {
    fileprivate mutating func write(_ bytes: some Collection<UInt8>, at offset: Int) {
        if count < offset + bytes.count {
            append(contentsOf: [UInt8](repeating: 0, count: offset + bytes.count - count))
        }
        replaceSubrange(offset..<offset + bytes.count, with: bytes)
    }
}

extension Host {
    /// One that is told of nothing, and expects nothing.
    static var silent: Host {
        var host = crudd_host()
        host.struct_size = UInt32(MemoryLayout<crudd_host>.size)
        return withUnsafePointer(to: host) { Host($0) }
    }
}
