import CRUDPluginABI

extension PluginBackend {
    /// Has the plugin copy its storage into an empty file.
    ///
    /// - Parameters:
    ///   - path: of the file.
    ///   - meanwhile: called between the steps, of which the first comes behind it.
    /// - Throws: ``CallError``; `unsupported` where the plugin makes no backups.
    func backUp(to path: String, meanwhile: () throws(CallError) -> Void) throws(CallError) {
        let table = plugin.table.pointee
        guard let begin = table.begin_backup else {
            throw CallError(status: Int(CRUDD_UNSUPPORTED), message: "the table has no function begin_backup")
        }
        guard let step = table.step_backup, let end = table.end_backup else {
            throw .violation("the table has begin_backup without step_backup and end_backup")
        }
        var backup: OpaquePointer?
        try call { memory, call, failure in begin(handle, call, memory.copy(path), &backup, failure) }
        guard let backup else { throw .violation("begin_backup returned CRUDD_OK and no backup") }
        defer { end(backup) }
        var isComplete = false
        while !isComplete {
            try meanwhile()
            try call { memory, call, failure in
                let progress = memory.copies([crudd_backup_progress()])
                let status = step(backup, call, progress, failure)
                isComplete = progress.pointee.is_complete != 0
                return status
            }
        }
    }
}
