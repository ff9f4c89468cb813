import CRUDPluginABI
import CRUDPluginHost
import Glibc

/// A plugin that is served to the daemon over the child protocol.
///
/// Each channel has a thread. The first, descriptor 3, carries any call; on the others, one for a thread of the
/// daemon and those on which its event loops look records up, reads go on beside a commit on the first.
enum Service {
    private static let firstChannel: CInt = 3
    /// Stacks count in the child's limit of memory, and a machine with many CPUs has many of these.
    private static let readerStackBytes = 1 << 20

    /// The descriptors of all channels.
    static func channels(lookupChannels: CInt) -> Range<CInt> { firstChannel..<firstChannel + 2 + lookupChannels }

    /// Loads a plugin and serves it until the first channel ends; answers the exit status.
    static func run(_ path: String, _ channels: Range<CInt>) -> CInt {
        let plugin: Plugin
        do throws(PluginFault) {
            plugin = try CheckCommand.load(path)
        } catch {
            return refuse(error.description)
        }
        let storage = Storage(plugin)
        var readers: [Thread] = []
        for channel in channels.dropFirst() {
            guard plugin.capabilities.contains(.readsConcurrently) else {
                close(channel)
                continue
            }
            do throws(ThreadFailure) {
                readers.append(
                    try Thread(named: "reads", stackBytes: readerStackBytes) { ChannelService(channel, storage).run() })
            } catch {
                fail("no thread for reads (errno \(error.code))")
            }
        }
        ChannelService(firstChannel, storage).run()
        // The daemon has closed all channels, the first last.
        for reader in readers { reader.join() }
        storage.close()
        return EXIT_SUCCESS
    }

    /// A file that is no plugin is a fault of the configuration: that is the reply to the daemon's greeting.
    private static func refuse(_ message: String) -> CInt {
        var reply = FrameWriter()
        reply.begin()
        reply.raw(#"{"id":1,"error":{"status":"unsupported","message":"#)
        reply.string(message)
        reply.raw("}}")
        reply.end()
        var socket = FramedSocket(owning: firstChannel, maximumFrameBytes: Int(UInt32.max))
        do throws(FramedSocket.Fault) {
            // A daemon that is still sending its greeting would see the channel closed, and not read on.
            _ = try socket.receive(until: nil)
            try socket.send(reply.bytes, until: nil)
        } catch {
            fail(message)
        }
        return EXIT_SUCCESS
    }
}
