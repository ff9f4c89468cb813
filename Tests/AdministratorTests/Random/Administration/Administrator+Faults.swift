import CRUDTestSupport
import Glibc

/// What breaks.
extension Administrator {
    /// What is broken is repaired after some actions.
    func lastFaults() { faults.remaining = 2 + number(below: 3) }

    func lock(_ backends: [String] = ["main", "other", "kid"]) {
        lastFaults()
        let backend = oneOf(backends)
        trace.add("locks \(backend)")
        faults.locks[backend] = DatabaseLock("\(installation.path)/\(backend).sqlite")
    }

    func stopChild() throws {
        lastFaults()
        trace.add("stops the child")
        if let pid = try childPID() { faults.stopChild(pid) }
    }

    func childPID() throws -> pid_t? {
        let backends = try reply(to: "backend.list").result?["backends"]?.elements
        return (backends?.first { $0["name"]?.string == "kid" }?["pid"]?.integer).map(pid_t.init)
    }
}
