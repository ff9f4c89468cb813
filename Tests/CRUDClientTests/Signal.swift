/// Tells a test that its script has got somewhere.
struct Signal: Sendable {
    private let (stream, continuation) = AsyncStream<Void>.makeStream()

    func send() {
        continuation.yield()
    }

    func wait() async {
        for await _ in stream { return }
    }
}
