import CRUDTestSupport
import Glibc

/// A place where a read of the scripted plugin waits: a FIFO that it reads to the end.
final class ReadGate {
    private let path: String
    private var end: Descriptor?

    /// The id whose read waits.
    var id: String { "wait:\(path)" }

    init(at path: String) throws {
        self.path = path
        guard mkfifo(path, 0o600) == 0 else { throw Failure.system("mkfifo \(path)") }
    }

    /// Waits until a read has come to the gate.
    func awaitRead() throws {
        let deadline = Deadline()
        while true {
            let number = Glibc.open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            if number >= 0 {
                end = Descriptor(owning: number)
                return
            }
            guard errno == ENXIO, !deadline.hasPassed else { throw Failure.system("open \(path)") }
            sched_yield()
        }
    }

    /// Lets the read pass that has come.
    func open() { end = nil }
}
