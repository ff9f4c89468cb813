import Glibc

/// Disks that fail when they are told to, for the programs that are started with ``variables``: what the shim
/// `Tests/Plugins/faulty-disk.c` needs.
package final class FaultyDisk: Sendable {
    private let directory: TemporaryDirectory
    private var faults: String { "\(directory.path)/faults" }

    /// The environment of the programs.
    package var variables: [String: String] {
        ["LD_PRELOAD": "\(directory.path)/faulty-disk.so", "FAULTY_DISK": faults]
    }

    package init() throws {
        directory = try TemporaryDirectory()
        try CompiledPlugin.compile("faulty-disk.c", to: "\(directory.path)/faulty-disk.so")
        try Files.write("", to: "\(faults).log", mode: 0o666)
        try Files.setMode(0o666, of: "\(faults).log")
        try heal()
    }

    /// Has an operation fail from now on.
    ///
    /// - Parameters:
    ///   - files: a part of their paths, or the end of one and `$`.
    ///   - code: errno.
    package func fail(_ operation: String, _ files: String, with code: CInt = EIO) throws {
        try set("\(operation) \(code) \(files)")
    }

    /// Kills the program before a call that writes, syncs or renames one of these files, or after it.
    ///
    /// - Parameter number: of the call, from 1.
    package func kill(atCall number: Int, of files: String, isAfter: Bool = false) throws {
        try set("\(isAfter ? "kill-after" : "kill") \(number) \(files)")
    }

    /// Has one call that writes or syncs one of these files fail with EIO.
    ///
    /// - Parameter number: of the call, from 1.
    package func fail(call number: Int, of files: String) throws { try set("fail \(number) \(files)") }

    package func heal() throws {
        try set("")
    }

    private func set(_ text: String) throws {
        try Files.write(text, to: "\(faults).new")
        guard rename("\(faults).new", faults) == 0 else { throw Failure.system("rename \(faults)") }
    }

    /// What has failed, or was traced, as operation and path.
    package var log: [String] {
        let text = (try? Files.read("\(faults).log")).map { String(decoding: $0, as: UTF8.self) } ?? ""
        return text.split(separator: "\n").map(String.init)
    }
}
