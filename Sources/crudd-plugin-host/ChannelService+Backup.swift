import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost

/// The methods of backups. The daemon has one at a time.
extension ChannelService {
    func beginBackup(_ request: inout FrameReader) throws(PluginFailure) {
        var path: [UInt8] = []
        try request.parameters { (request, key) throws(ProtocolViolation) in
            if "path" ~= key { path = Array(try request.text().utf8) } else { try request.skip() }
        }
        guard let begin = table.pointee.begin_backup else {
            throw PluginFailure(status: CRUDD_UNSUPPORTED, message: "the plugin makes no backups")
        }
        guard storage.backup == nil else {
            throw PluginFailure(status: CRUDD_UNAVAILABLE, message: "a backup is in progress")
        }
        let backend = try backend()
        var backup: OpaquePointer?
        try failure.check(
            path.withUnsafeBufferPointer {
                begin(backend, context.begin(), crudd_bytes($0), &backup, failure.pointer)
            })
        guard let backup else { throw PluginFailure(status: CRUDD_INTERNAL, message: "the plugin began no backup") }
        storage.keep(PluginHandle(pointer: backup))
    }

    func stepBackup(_ request: inout FrameReader) throws(PluginFailure) {
        try request.parameters { (request, _) throws(ProtocolViolation) in try request.skip() }
        guard let backup = storage.backup else {
            throw PluginFailure(status: CRUDD_INTERNAL, message: "there is no backup")
        }
        var progress = crudd_backup_progress.sized()
        try failure.check(
            table.pointee.step_backup(backup.pointer, context.begin(), &progress, failure.pointer))
        reply.raw(#""complete":"#, progress.is_complete != 0)
        reply.raw(#","bytes":"#, progress.bytes)
        reply.raw(#","totalBytes":"#, progress.total_bytes)
    }

    func endBackup(_ request: inout FrameReader) throws(PluginFailure) {
        try request.parameters { (request, _) throws(ProtocolViolation) in try request.skip() }
        if let backup = storage.takeBackup() { table.pointee.end_backup(backup.pointer) }
    }
}
