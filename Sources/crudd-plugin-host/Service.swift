import CRUDPluginABI
import CRUDPluginHost
import Glibc

/// A plugin that is served to the daemon over the child protocol: one thread for each channel, so that reads on the
/// second go on beside a commit on the first.
enum Service {
    /// The descriptor of the first channel; the second follows.
    static let firstChannel: CInt = 3

    /// Loads a plugin and serves it until the first channel ends; answers the exit status.
    static func run(_ path: String) -> CInt {
        let plugin: Plugin
        do throws(PluginFault) {
            plugin = try CheckCommand.load(path)
        } catch {
            return refuse(error.description)
        }
        let storage = Storage(plugin)
        var reader: Thread?
        if plugin.capabilities.contains(.readsConcurrently) {
            do throws(ThreadFailure) {
                reader = try Thread(named: "reads") { ChannelService(firstChannel + 1, storage).run() }
            } catch {
                fail("no thread for reads (errno \(error.code))")
            }
        } else {
            close(firstChannel + 1)
        }
        ChannelService(firstChannel, storage).run()
        // The daemon has closed both channels, the second first.
        reader?.join()
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
        let socket = FramedSocket(owning: firstChannel, maximumFrameBytes: 0)
        try? socket.send(reply.bytes, until: nil)
        return EXIT_SUCCESS
    }
}
