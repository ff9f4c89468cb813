import CRUDModel
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

    /// Asks every loop something.
    ///
    /// - Parameter message: to be resolved by the loop.
    /// - Throws: `unavailable` if that takes longer than `timeout`.
    func ask<Answer>(
        within timeout: Duration, _ message: (OneShot<Answer>) -> Mailbox.Message
    ) throws(CRUDError) -> [Answer] {
        let deadline = ContinuousClock.now + timeout
        var answers: [Answer] = []
        for answer in post(message) {
            guard let answer = answer.wait(atMost: deadline - .now) else {
                throw CRUDError(.unavailable, "an event loop of the daemon takes long to reply")
            }
            answers.append(answer)
        }
        return answers
    }

    /// Posts a message to every loop.
    ///
    /// - Returns: what each loop will resolve.
    private func post<Answer>(_ message: (OneShot<Answer>) -> Mailbox.Message) -> [OneShot<Answer>] {
        mailboxes.map { mailbox in
            let answer = OneShot<Answer>()
            mailbox.post(message(answer))
            return answer
        }
    }
}
