import Glibc
import Synchronization

/// Who holds a lease, such that another process of the same machine can tell that it has ended.
enum HolderIdentity {
    /// Those of this process that have not ended.
    private static let active = Mutex<Set<String>>([])

    /// For the administrator.
    static var place: String {
        var name = [CChar](repeating: 0, count: 256)
        gethostname(&name, name.count - 1)
        return "process \(getpid()) of \(text(name))"
    }

    /// `BOOT/NAMESPACE/PID/START/RANDOM`: a process is known by its id, within a namespace of ids and one run of the
    /// kernel, and by the time at which it was started.
    static func make() -> String {
        let holder = "\(machine)/\(getpid())/\(startTime(of: getpid()) ?? "")/\(UInt64.random(in: 0 ... .max))"
        active.withLock { _ = $0.insert(holder) }
        return holder
    }

    /// A holder of this process does not use its lease any more, whether or not it could tell the server.
    static func end(_ holder: String) { active.withLock { _ = $0.remove(holder) } }

    /// Whether a holder is certain to have ended.
    static func isDead(_ holder: String) -> Bool {
        let parts = holder.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 5, "\(parts[0])/\(parts[1])" == machine, !machine.hasPrefix("/"), !machine.hasSuffix("/"),
            let pid = pid_t(parts[2]), pid > 0
        else { return false }
        if kill(pid, 0) == -1, errno == ESRCH { return true }
        // Another process may have got its id.
        guard let start = startTime(of: pid) else { return false }
        if start != parts[3] { return true }
        return pid == getpid() && active.withLock { !$0.contains(holder) }
    }

    private static let machine: String = {
        let boot = text(of: "/proc/sys/kernel/random/boot_id")?.filter { !$0.isNewline } ?? ""
        var namespace = [CChar](repeating: 0, count: 64)
        let size = readlink("/proc/self/ns/pid", &namespace, namespace.count - 1)
        return "\(boot)/\(size > 0 ? text(namespace) : "")"
    }()

    /// Field 22 of `/proc/PID/stat`; nil where it cannot be read, or the process has ended and is a zombie.
    private static func startTime(of pid: pid_t) -> String? {
        // The second field is the program's name, which may hold spaces and parentheses.
        guard let stat = text(of: "/proc/\(pid)/stat"), let end = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[end...].split(separator: " ")
        guard fields.count > 20 else { return nil }
        // A zombie holds nothing any more.
        return fields[1] == "Z" ? "ended" : String(fields[20])
    }

    private static func text(of path: String) -> String? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var bytes = [CChar](repeating: 0, count: 4096)
        let count = fread(&bytes, 1, bytes.count - 1, file)
        return count > 0 ? text(bytes) : nil
    }

    /// What stands before the terminator.
    private static func text(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
