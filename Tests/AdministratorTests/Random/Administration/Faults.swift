import CRUDTestSupport
import Glibc

/// What does not work now.
struct Faults {
    /// By backend.
    var locks: [String: DatabaseLock] = [:]
    /// Whether the state directory is full.
    var isFull = false
    /// For how many further actions they last.
    var remaining = 0
    /// A child that is stopped.
    private(set) var stopped: pid_t?

    mutating func stopChild(_ pid: pid_t) {
        endChild()
        if Glibc.kill(pid, SIGSTOP) == 0 { stopped = pid }
    }

    /// The child continues, unless the daemon has killed it.
    mutating func endChild() {
        if let stopped { Glibc.kill(stopped, SIGCONT) }
        stopped = nil
    }
}
