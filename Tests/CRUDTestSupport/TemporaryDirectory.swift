import Glibc

/// A new directory that is removed with its contents. Other users may read it, because some clients run as other users.
package final class TemporaryDirectory: Sendable {
    package let path: String

    /// - Parameter parent: by default `$TMPDIR`, else `/tmp`.
    package init(in parent: String? = nil) throws {
        let parent = parent ?? getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/crudd-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure.system("mkdtemp in \(parent)") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        try Files.setMode(0o755, of: path)
    }

    deinit {
        Files.remove(path)
    }
}
