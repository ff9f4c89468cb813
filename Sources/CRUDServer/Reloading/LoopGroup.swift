import CRUDStorage
import CRUDThreads

/// All event loops of the daemon, as the thread sees them that changes what they serve.
struct LoopGroup: Sendable {
    private let mailboxes: [Mailbox]

    init(_ mailboxes: [Mailbox]) {
        self.mailboxes = mailboxes
    }

    /// Has the requests of these collections wait in every loop, and waits until what loops read from children
    /// themselves is done.
    ///
    /// - Returns: false if that takes longer than `timeout`.
    func quiesce(_ collections: QuiescedCollections, within timeout: Duration) -> Bool {
        let deadline = ContinuousClock.now + timeout
        return post { .quiesce(collections, $0) }.allSatisfy { $0.wait(atMost: deadline - .now) != nil }
    }

    /// Has every loop switch to a service, and waits until all have.
    func serve(_ service: Service) {
        for isDone in post({ .serve(service, $0) }) { _ = isDone.wait() }
    }

    /// Posts a message to every loop.
    ///
    /// - Returns: what each loop will resolve.
    private func post(_ message: (OneShot<Bool>) -> Mailbox.Message) -> [OneShot<Bool>] {
        mailboxes.map { mailbox in
            let isDone = OneShot<Bool>()
            mailbox.post(message(isDone))
            return isDone
        }
    }
}
