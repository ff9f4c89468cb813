import CRUDModel
import CRUDPluginHost

/// Reads over channels of the loop's own to the backend's child. What finds them busy waits for whichever
/// has made a call first; what a channel cannot do goes to the backend's threads.
final class ChannelStore: Store {
    private var channels: [LoopChannel] = []
    private var waiting: [ReadBatch] = []
    /// The channels that were busy when the store was quiesced, and how many groups of batches each had taken.
    private var outstanding: [(channel: LoopChannel, groupCount: Int)] = []

    override func flush() {
        guard let batch = takeReads() else { return }
        guard let channel = channels.first(where: { $0.isOpen && !$0.isBusy }) ?? makeChannel() ?? channels.first,
            channel.admits(batch)
        else { return client.begin(.read(.batch(batch))) }
        client.track(batch)
        waiting.append(batch)
        if !channel.isBusy { channel.advance() }
    }

    /// - Returns: nil where there are as many as there may be, or the backend has no child that can be asked.
    private func makeChannel() -> LoopChannel? {
        guard channels.count < LoopChannel.perLoop, let child = client.backend.child,
            let channel = child.makeReadChannel().flatMap({ LoopChannel($0, to: child, of: self, loop) })
        else { return nil }
        channels.append(channel)
        return channel
    }

    // MARK: For channels

    var now: Duration { loop.now }
    var unavailable: CRUDError { client.backend.failures.unavailable }

    func report(_ failure: PluginFailure) -> CRUDError { client.backend.failures.report(failure, during: "read") }
    func complete(_ batch: ReadBatch) { client.complete(batch) }
    func submitToBackend(_ batch: ReadBatch) { client.backend.submit(.read(.batch(batch))) }
    func wake() { loop.wake() }

    /// Takes what waits, for a channel that can make a call.
    func takeWaiting() -> [ReadBatch] {
        defer { waiting.removeAll() }
        return waiting
    }

    /// A channel has been closed.
    func remove(_ channel: LoopChannel) {
        channels.removeAll { $0 === channel }
        if channels.isEmpty { returnWaiting() }
    }

    /// Has the backend's threads read what waits.
    private func returnWaiting() {
        for batch in takeWaiting() { submitToBackend(batch) }
    }

    // MARK: Quiescing

    override func quiesce() {
        flush()
        returnWaiting()
        outstanding = channels.filter(\.isBusy).map { ($0, $0.groupCount) }
    }

    /// What has begun since does not count: collections that stay are read all the time.
    override var isQuiescent: Bool {
        outstanding.removeAll { !$0.channel.isExecuting(anyOfFirst: $0.groupCount) }
        return outstanding.isEmpty
    }
}
