/// Signals progress of a script to its test.
struct Signal: Sendable {
    private let channel = AsyncStream<Void>.makeStream()

    func send() {
        channel.continuation.yield()
    }

    func wait() async {
        for await _ in channel.stream { return }
    }
}
