import Glibc

/// A fresh directory that is removed with all that is in it. Others may look into it, as clients of another user must.
package final class TemporaryDirectory: Sendable {
    package let path: String

    package init() throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/crudd-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure.system("mkdtemp in \(parent)") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        try Files.setMode(0o755, of: path)
    }

    deinit {
        Files.remove(path)
    }
}
