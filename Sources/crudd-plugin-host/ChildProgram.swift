import CLinux
import CRUDPluginABI
import CRUDPluginHost
import Glibc

/// The first program of every child process of the daemon, which starts it as
///
///     crudd-plugin-host --child PARENT MEMORY plugin FILE SHA256 CHANNELS DIRECTORY…
///     crudd-plugin-host --child PARENT MEMORY command FILE SHA256 WORD…
///
/// The first loads a plugin of one of the directories and serves it, see ``ChildService``; the second becomes FILE,
/// which serves itself on 0 and 1. PARENT is the daemon's process id, MEMORY the most bytes of memory that the child
/// may make its own, SHA256 the digest that FILE must have, CHANNELS how many channels event loops read on. Before
/// anything else runs, the process is tied to its parent's life, held to its limits and rid of whatever it may have
/// inherited.
enum ChildProgram {
    static func run(_ words: [String]) -> Never {
        guard words.count >= 6, let parent = pid_t(words[0]), let memory = rlim_t(words[1]) else {
            fail("only crudd starts this")
        }
        guard clinux_die_with(parent) == 0 else { fail("the daemon has gone") }
        Confinement.apply(memoryBytes: memory)
        let (path, sha256) = (words[3], words[4] == ChildCommand.anyDigest ? nil : words[4])
        switch words[2] {
        case "plugin":
            guard let loopChannels = CInt(words[5]) else { fail("only crudd starts this") }
            let channels = ChildService.channels(loopChannels: loopChannels)
            _ = clinux_close_from(channels.upperBound)
            let plugin: Plugin
            do throws(PluginLoadingError) {
                plugin = try Plugin.load(PluginFile(named: path, in: Array(words[6...]), sha256: sha256))
            } catch {
                refuse(PluginFailure(error), on: channels.lowerBound)
            }
            exit(ChildService.run(plugin, channels))
        case "command":
            _ = clinux_close_from(STDERR_FILENO + 1)
            do throws(PluginLoadingError) {
                let file = try PluginFile(executable: path, sha256: sha256)
                execv(file.path, words[5...].map { strdup($0) } + [nil])
                throw PluginLoadingError("\(path) cannot be executed", errno)
            } catch {
                refuse(PluginFailure(error), on: STDIN_FILENO)
            }
        case let other: fail("there is no kind of child \(other)")
        }
    }

    /// Why the file is not used, which the daemon is told in the reply to its greeting.
    private static func refuse(_ failure: PluginFailure, on channel: CInt) -> Never {
        var reply = FrameWriter()
        reply.failure(failure, to: 1)
        var socket = FramedSocket(owning: channel, maximumFrameBytes: Int(UInt32.max))
        do throws(ChannelError) {
            // A daemon that is still sending its greeting would see the channel closed, and not read on.
            _ = try socket.receive(until: nil)
            try socket.send(&reply, until: nil)
        } catch {
            fail(failure.message)
        }
        exit(EXIT_SUCCESS)
    }
}

/// Ends a child that cannot continue.
func fail(_ message: String) -> Never {
    StandardStream.error.write("<3>crudd-plugin-host: \(message)\n")
    exit(70)  // EX_SOFTWARE
}
