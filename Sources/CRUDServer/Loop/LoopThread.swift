import CRUDEventLoop
import CRUDThreads

/// An event loop on a thread of its own; a loop belongs to the thread that makes it.
struct LoopThread {
    let mailbox: Mailbox
    let heartbeat: Watchdog.Heartbeat
    private let finished: OneShot<Bool>
    private let thread: Thread

    init(_ service: Service, _ inspector: Inspector, number: Int, heartbeatInterval: Duration?) throws {
        let finished = OneShot<Bool>()
        self.finished = finished
        let made = OneShot<Result<(Mailbox, Watchdog.Heartbeat), SystemCallError>>()
        thread = try Thread(named: "loop \(number)") {
            do throws(SystemCallError) {
                let loop = try ServiceLoop(
                    service, inspector, number: number, heartbeatInterval: heartbeatInterval)
                made.resolve(.success((loop.mailbox, loop.heartbeat)))
                finished.resolve(loop.run())
            } catch {
                made.resolve(.failure(error))
            }
        }
        (mailbox, heartbeat) = try made.wait().get()
    }

    /// Waits for its end; false if a request could not be finished in time.
    func join() -> Bool {
        defer { thread.join() }
        return finished.wait()
    }
}
