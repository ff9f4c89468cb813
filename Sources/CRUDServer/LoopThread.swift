import CRUDEventLoop
import CRUDPluginHost
import Synchronization

/// An event loop on a thread of its own; loops belong to the thread that makes them.
struct LoopThread {
    let mailbox: Mailbox
    private let finished: Handover<Bool>
    private let thread: Thread

    init(_ service: Service, number: Int) throws {
        let finished = Handover<Bool>()
        self.finished = finished
        let made = Handover<Result<Mailbox, SystemCallError>>()
        thread = try Thread(named: "loop \(number)") {
            do throws(SystemCallError) {
                let loop = try ServiceLoop(service, number: number)
                made.give(.success(loop.mailbox))
                finished.give(loop.run())
            } catch {
                made.give(.failure(error))
            }
        }
        mailbox = try made.wait().get()
    }

    /// Waits for its end; false if something could not be answered in time.
    func join() -> Bool {
        defer { thread.join() }
        return finished.wait()
    }
}
