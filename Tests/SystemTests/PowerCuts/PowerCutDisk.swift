import CRUDTestSupport
import Glibc

/// An ext4 file system in a loop device whose power can be cut: what has not been synced by then never gets there.
final class PowerCutDisk {
    private let directory: TemporaryDirectory
    /// Where it is mounted.
    let path: String
    private var image: String { "\(directory.path)/image" }

    /// Whether this machine allows loop devices; root alone may use them.
    static let isAvailable = (try? PowerCutDisk()) != nil

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/disk"
        try Files.makeDirectory(path)
        try Files.write("", to: image)
        guard truncate(image, 64 << 20) == 0 else { throw Failure.system("truncate \(image)") }
        try Self.run("mkfs.ext4", "-q", "-F", image)
        try mount()
    }

    deinit {
        _ = try? Command.run("umount", ["--lazy", path])
    }

    /// The variables of a daemon whose suites of UserDefaults are to be on the disk.
    var environment: [String: String] { ["HOME": path, "XDG_CONFIG_HOME": ""] }

    /// A PostgreSQL server, running, whose data is on the disk.
    func makeServer() throws -> PostgreSQLServer {
        let server = try PostgreSQLServer(in: TemporaryDirectory(in: path), port: 5432)
        try server.initialize(["--wal-segsize=1"])
        try server.start(settings: Self.serverSettings)
        return server
    }

    static let serverSettings = ["max_wal_size": "4MB", "min_wal_size": "2MB"]

    /// Leaves no room for anything, or makes room again.
    func setFull(_ isFull: Bool) throws {
        let ballast = "\(path)/ballast"
        guard isFull else { return Files.remove(ballast) }
        // `dd` ends when the disk is full.
        let outcome = try Command.run("dd", ["if=/dev/zero", "of=\(ballast)", "bs=4096"])
        guard outcome.errors.contains("No space left") else { throw Failure("dd: \(outcome.errors)") }
    }

    /// Every write that comes now fails with EIO.
    func cutPower() throws {
        let number = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { throw Failure.system("open \(path)") }
        let root = Descriptor(owning: number)
        // EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH, as in the kernel's fs/ext4/ext4.h: not even the journal
        // is written.
        var flags: UInt32 = 2
        guard ioctl(root.number, 0x8004_587D, &flags) == 0 else { throw Failure.system("ioctl EXT4_IOC_SHUTDOWN") }
    }

    /// Mounts the file system again, as after a start of the machine. Nobody may have files open.
    func restorePower() throws {
        let deadline = Deadline()
        // The children of a daemon that was killed end by themselves.
        while try Command.run("umount", [path]).status != .exited(0) {
            guard !deadline.hasPassed else { throw Failure("\(path) is still in use") }
        }
        try mount()
    }

    private func mount() throws {
        try Self.run("mount", "-o", "loop", image, path)
    }

    private static func run(_ program: String, _ arguments: String...) throws {
        let outcome = try Command.run(program, arguments)
        guard outcome.status == .exited(0) else { throw Failure("\(program): \(outcome.errors)") }
    }
}
