import CRUDPluginABI

/// Backups through a child, which has one at a time.
extension Child {
    /// Has the child begin a copy of its storage.
    ///
    /// - Parameter path: of an empty file.
    func beginBackup(to path: UnsafeRawBufferPointer) throws(PluginFailure) {
        try call("beginBackup", for: .preparation) { request in
            request.raw(#""path":"#, path)
        }
    }

    /// Has the child copy on for some milliseconds.
    func stepBackup() throws(PluginFailure) -> crudd_backup_progress {
        var progress = crudd_backup_progress.sized()
        try call("stepBackup", for: .reading) { _ in
        } _: { reader throws(ProtocolViolation) in
            try reader.object { (reader, key) throws(ProtocolViolation) in
                switch key {
                case "complete": progress.is_complete = try reader.bool() ? 1 : 0
                case "bytes": progress.bytes = try reader.integer()
                case "totalBytes": progress.total_bytes = try reader.integer()
                default: try reader.skip()
                }
            }
            return true
        }
        return progress
    }

    /// Has the child end the backup.
    func endBackup() {
        // A child that cannot be asked has ended it already.
        try? call("endBackup", for: .maintenance)
    }
}
