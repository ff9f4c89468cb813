import CRUDModel
import CRUDPlacement
import CRUDStorage
import CRUDThreads

/// All event loops of the daemon, as the thread sees them that changes what they serve.
struct LoopGroup: ServingLoops {
    private let mailboxes: [Mailbox]

    init(_ mailboxes: [Mailbox]) {
        self.mailboxes = mailboxes
    }

    /// Has the requests of these collections wait in every loop, and waits until what loops read from the children of
    /// their backends themselves is done. Other backends are not waited for: one of them may hang.
    ///
    /// - Returns: the backends that may have requests of these collections in their queues; nil if it takes longer than
    ///   `timeout`.
    func quiesce(_ collections: QuiescedCollections, within timeout: Duration) -> [Backend]? {
        let deadline = ContinuousClock.now + timeout
        var backends: [Backend] = []
        for reply in post({ .quiesce(collections, $0) }) {
            guard let concerned = reply.wait(atMost: deadline - .now) else { return nil }
            backends += concerned.filter { backend in !backends.contains { $0 === backend } }
        }
        return backends
    }

    /// Has every loop switch to a service, and waits until all have.
    func serve(_ service: Service) {
        for isDone in post({ .serve(service, $0) }) { _ = isDone.wait() }
    }

    /// Has the requests that wait resume where their collections are now, and waits until all loops know.
    func serveQuiesced() {
        for isDone in post({ .serveQuiesced($0) }) { _ = isDone.wait() }
    }

    /// Asks every loop something.
    ///
    /// - Parameter message: to be resolved by the loop.
    /// - Throws: `unavailable` if that takes longer than `timeout`.
    func ask<Reply>(
        within timeout: Duration, _ message: (OneShot<Reply>) -> Mailbox.Message
    ) throws(CRUDError) -> [Reply] {
        let deadline = ContinuousClock.now + timeout
        var replies: [Reply] = []
        for reply in post(message) {
            guard let reply = reply.wait(atMost: deadline - .now) else {
                throw CRUDError(.unavailable, "an event loop of the daemon takes long to reply")
            }
            replies.append(reply)
        }
        return replies
    }

    /// Posts a message to every loop.
    ///
    /// - Returns: what each loop will resolve.
    private func post<Reply>(_ message: (OneShot<Reply>) -> Mailbox.Message) -> [OneShot<Reply>] {
        mailboxes.map { mailbox in
            let reply = OneShot<Reply>()
            mailbox.post(message(reply))
            return reply
        }
    }
}
