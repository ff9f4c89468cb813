import CRUDTestSupport
import Glibc

/// A daemon with one adapter whose storage lies on a disk that can be small, and that fails when it is told to.
final class StorageDisk {
    /// What keeps its records on a disk.
    enum Adapter: String, CaseIterable {
        case sqlite, filesystem, userdefaults, memory

        fileprivate var options: String {
            switch self {
            // Its reserve is small, as the disks are.
            case .sqlite: "{path: $DIRECTORY/disk/main.sqlite, reserve: 2MiB}"
            case .filesystem: "{directory: $DIRECTORY/disk/files}"
            case .userdefaults: "{suite: com.example.test}"
            case .memory: "{log: $DIRECTORY/disk/log}"
            }
        }
    }

    private let installation: Installation
    private let faults: FaultyDisk
    private let variables: [String: String]
    private var isMounted = false
    private(set) var daemon: Daemon?

    var path: String { "\(installation.path)/disk" }

    /// - Parameters:
    ///   - isolation: of the backend.
    ///   - variables: those of the daemon; nil: those that have the disk fail.
    ///   - holdsState: whether the daemon's own state lies on the disk, too.
    ///   - cache: how much the record cache may take; nil leaves it to the daemon.
    init(
        _ adapter: Adapter, isolation: String = "inline", variables: [String: String]? = nil, holdsState: Bool = false,
        cache: String? = nil
    ) throws {
        let configuration = Configuration(
            backends: "main: {plugin: \(adapter.rawValue), isolation: \(isolation), options: \(adapter.options)}",
            cache: cache)
        let state = holdsState ? "$DIRECTORY/disk/state" : "$DIRECTORY/state"
        installation = try Installation(text: configuration.text.replacing("$DIRECTORY/state", with: state))
        faults = try FaultyDisk()
        self.variables = variables ?? faults.variables
        try Files.makeDirectory("\(installation.path)/disk", mode: 0o700)
    }

    deinit {
        try? daemon?.kill()
        if isMounted { _ = try? Command.run("umount", ["--lazy", path]) }
    }

    /// Starts a daemon, in the place of one that has ended.
    func start() throws -> Connection {
        let variables = variables.merging(["HOME": path, "XDG_CONFIG_HOME": ""]) { $1 }
        let started = try Daemon(on: installation, environment: variables)
        daemon = started
        return try started.connect()
    }

    /// Kills the daemon and starts another one.
    func restart() throws -> Connection {
        try daemon?.kill()
        return try start()
    }

    /// Gives the disk a size; before the first start, or while the daemon runs.
    func resize(to size: String) throws {
        let options = isMounted ? "remount,size=\(size)" : "size=\(size),mode=0700"
        let outcome = try Command.run("mount", ["-t", "tmpfs", "-o", options, "crudd-test", path])
        guard outcome.status == .exited(0) else { throw Failure("mount: \(outcome.errors)") }
        isMounted = true
    }

    /// Has another program take all the room that is left.
    func takeRest() throws {
        let outcome = try Command.run("sh", ["-c", "! cat /dev/zero >> \"$0\" 2> /dev/null", "\(path)/rest"])
        guard outcome.status == .exited(0) else { throw Failure("\(path): \(outcome.errors)") }
    }

    /// Has that program give it back.
    func freeRest() { Files.remove("\(path)/rest") }

    /// What fails from now on; see `Tests/Plugins/faulty-disk.c`.
    ///
    /// - Parameter files: a part of their paths, or the end of one and `$`.
    func fail(_ operation: String, _ files: String? = nil) throws {
        try faults.fail(operation, files ?? path)
    }

    /// Kills the daemon at a call that syncs one of these files, or after it.
    ///
    /// - Parameter number: of the call, from 1.
    func kill(atCall number: Int, of files: String, isAfter: Bool) throws {
        try faults.kill(atCall: number, of: files, isAfter: isAfter)
    }

    func heal() throws { try faults.heal() }

    /// What has failed, or was traced, as operation and path.
    var log: [String] { faults.log }
}
