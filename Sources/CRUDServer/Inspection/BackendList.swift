import CRUDConfiguration
import CRUDJSON
import CRUDPluginHost
import CRUDStorage

/// The result of `backend.list`, as JSON text.
enum BackendList {
    static func text(_ backends: [Backend], _ disks: Disks) -> [UInt8] {
        let usage = disks.usage(of: backends.compactMap(\.path))
        var writer = JSONWriter()
        writer.object { result in
            result.member("backends", objects: backends) { backend, description in
                backend.describe(to: &description)
                if let backup = backend.backup {
                    description.key("backup")
                    description.object { members in
                        members.member("path", backup.path)
                        members.member("bytes", backup.bytes)
                        if backup.totalBytes > 0 { members.member("totalBytes", backup.totalBytes) }
                    }
                }
                guard let path = backend.path else { return }
                description.member("path", path)
                if let bytes = usage[path]?.bytes { description.member("bytes", bytes) }
                if let bytes = usage[path]?.freeBytes { description.member("freeBytes", bytes) }
            }
        }
        return writer.bytes
    }
}

extension Backend {
    /// Where its storage is on a disk; nil: an option of its plugin does not say it.
    fileprivate var path: String? { storageLocation.flatMap { $0.utf8.first == UInt8(ascii: "/") ? $0 : nil } }

    fileprivate func describe(to description: inout JSONWriter) {
        let status = status
        description.member("name", name)
        description.member(plugin.isCommand ? "command" : "plugin", plugin.name)
        let isolation: BackendConfiguration.Isolation = plugin.isChild ? .process : .inline
        description.member("isolation", isolation.rawValue)
        description.member("state", status.state.rawValue)
        if plugin.isChild {
            description.member("restarts", status.restarts)
            if let pid = status.pid { description.member("pid", pid) }
        }
        description.member("capabilities", strings: capabilities.names)
        if let notice = status.notice { description.member("notice", notice) }
        if let error = status.lastError { description.member("lastError", error) }
    }
}
