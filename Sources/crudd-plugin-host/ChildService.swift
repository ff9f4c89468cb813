import CRUDPluginHost
import CRUDThreads
import Glibc

/// A plugin that is served to the daemon over the child protocol.
///
/// Each channel has a thread. The first, descriptor 3, carries any call and the notifications; on the
/// others, one for a thread of the daemon and those of its event loops, reads are made beside a commit on the first.
enum ChildService {
    private static let firstChannel: CInt = 3
    /// Stacks count in the child's limit of memory, and a machine with many CPUs has many of these.
    private static let readerStackBytes = 1 << 20

    /// The descriptors of all channels.
    static func channels(loopChannels: CInt) -> Range<CInt> { firstChannel..<firstChannel + 2 + loopChannels }

    /// Serves a plugin until the first channel is closed; returns the exit status.
    static func run(_ plugin: Plugin, _ channels: Range<CInt>) -> CInt {
        let used = plugin.capabilities.contains(.concurrentReads) ? channels : channels.prefix(1)
        for channel in channels where !used.contains(channel) { close(channel) }
        let storage = Storage(plugin)
        let senders = used.map { ChannelSender($0) }
        let daemon = DaemonReference(senders)
        var readers: [Thread] = []
        for (channel, sender) in zip(used, senders).dropFirst() {
            do throws(ThreadFailure) {
                readers.append(
                    try Thread(named: "reads", stackBytes: readerStackBytes) {
                        ChannelService(channel, sender, storage, daemon).run()
                    })
            } catch {
                fail("no thread for reads (errno \(error.code))")
            }
        }
        ChannelService(firstChannel, senders[0], storage, daemon).run()
        // The daemon has closed all channels, the first last.
        for reader in readers { reader.join() }
        storage.close()
        return EXIT_SUCCESS
    }
}
