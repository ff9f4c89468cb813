import CRUDTestSupport
import Glibc

/// A small disk for the daemon's own state, which can be filled.
final class StateDisk {
    private let path: String
    private var ballast: String { "\(path)/ballast" }

    /// - Returns: nil where it cannot be mounted: that takes root.
    init?(at path: String) {
        self.path = path
        let options = "size=1m,mode=0700"
        let outcome = try? Command.run("mount", ["-t", "tmpfs", "-o", options, "crudd-test", path])
        guard outcome?.status == .exited(0) else { return nil }
    }

    /// It is mounted until then.
    func unmount() {
        _ = try? Command.run("umount", ["--lazy", path])
    }

    /// Leaves no room for a further page of any file, or makes room again.
    func setFull(_ isFull: Bool) throws {
        guard isFull else { return Files.remove(ballast) }
        let number = open(ballast, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw Failure.system("open \(ballast)") }
        let descriptor = Descriptor(owning: number)
        let page = [UInt8](repeating: 0, count: 4096)
        while write(descriptor.number, page, page.count) > 0 {}
        guard errno == ENOSPC else { throw Failure.system("write \(ballast)") }
    }
}
