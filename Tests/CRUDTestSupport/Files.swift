package import Glibc

/// The few file operations that tests need.
package enum Files {
    package static func exists(_ path: String) -> Bool {
        status(path) != nil
    }

    /// lstat(2); nil if nothing is there.
    package static func status(_ path: String) -> stat? {
        var status = stat()
        return lstat(path, &status) == 0 ? status : nil
    }

    package static func read(_ path: String) throws -> [UInt8] {
        let number = open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw Failure.system("open \(path)") }
        let descriptor = Descriptor(owning: number)
        var content: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = Glibc.read(descriptor.number, &chunk, chunk.count)
            guard count >= 0 else { throw Failure.system("read \(path)") }
            if count == 0 { return content }
            content += chunk[..<count]
        }
    }

    /// Creates or replaces a file with that content and mode.
    package static func write(_ content: [UInt8], to path: String, mode: mode_t = 0o644) throws {
        let number = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        guard number >= 0 else { throw Failure.system("open \(path)") }
        let descriptor = Descriptor(owning: number)
        var rest = content[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor.number, $0.baseAddress, $0.count) }
            guard count > 0 else { throw Failure.system("write \(path)") }
            rest = rest.dropFirst(count)
        }
        guard fchmod(descriptor.number, mode) == 0 else { throw Failure.system("fchmod \(path)") }
    }

    package static func write(_ text: String, to path: String, mode: mode_t = 0o644) throws {
        try write(Array(text.utf8), to: path, mode: mode)
    }

    package static func copy(_ source: String, to path: String, mode: mode_t) throws {
        try write(read(source), to: path, mode: mode)
    }

    package static func makeDirectory(_ path: String, mode: mode_t = 0o755) throws {
        guard mkdir(path, mode) == 0, chmod(path, mode) == 0 else { throw Failure.system("mkdir \(path)") }
    }

    package static func setMode(_ mode: mode_t, of path: String) throws {
        guard chmod(path, mode) == 0 else { throw Failure.system("chmod \(path)") }
    }

    /// The names in a directory, without `.` and `..`.
    package static func names(in path: String) throws -> [String] {
        guard let directory = opendir(path) else { throw Failure.system("opendir \(path)") }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    /// Removes a file, or a directory with all that is in it; links are removed, not followed.
    package static func remove(_ path: String) {
        if unlink(path) == 0 { return }
        for name in (try? names(in: path)) ?? [] { remove("\(path)/\(name)") }
        rmdir(path)
    }
}
