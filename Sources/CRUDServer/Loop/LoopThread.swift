import CRUDEventLoop
import CRUDThreads

/// An event loop on a thread of its own; a loop belongs to the thread that makes it.
struct LoopThread {
    let mailbox: Mailbox
    private let finished: OneShot<Bool>
    private let thread: Thread

    init(_ service: Service, number: Int) throws {
        let finished = OneShot<Bool>()
        self.finished = finished
        let made = OneShot<Result<Mailbox, SystemCallError>>()
        thread = try Thread(named: "loop \(number)") {
            do throws(SystemCallError) {
                let loop = try ServiceLoop(service, number: number)
                made.resolve(.success(loop.mailbox))
                finished.resolve(loop.run())
            } catch {
                made.resolve(.failure(error))
            }
        }
        mailbox = try made.wait().get()
    }

    /// Waits for its end; false if a request could not be finished in time.
    func join() -> Bool {
        defer { thread.join() }
        return finished.wait()
    }
}
