import CLinux
import Glibc

/// The first program of every child process of the daemon, which starts it as
///
///     crudd-plugin-host --child PARENT MEMORY plugin FILE CHANNELS   loads a plugin and serves it, see ``Service``
///     crudd-plugin-host --child PARENT MEMORY command FILE WORD…     becomes FILE, which serves itself on 0 and 1
///
/// PARENT is the daemon's process id, MEMORY the most bytes of memory that the child may make its own, CHANNELS how
/// many channels event loops read on. Before anything else runs, the process is tied to its parent's life, held to its
/// limits and rid of whatever it may have inherited.
enum ChildProgram {
    static func run(_ words: [String]) -> Never {
        guard words.count >= 4, let parent = pid_t(words[0]), let memory = rlim_t(words[1]) else {
            fail("only crudd starts this")
        }
        guard clinux_die_with(parent) == 0 else { fail("the daemon has gone") }
        Confinement.apply(memoryBytes: memory)
        switch words[2] {
        case "plugin":
            guard words.count == 5, let loopChannels = CInt(words[4]) else { fail("only crudd starts this") }
            let channels = Service.channels(loopChannels: loopChannels)
            _ = clinux_close_from(channels.upperBound)
            exit(Service.run(words[3], channels))
        case "command":
            _ = clinux_close_from(STDERR_FILENO + 1)
            Confinement.become(words[3], Array(words[4...]))
        case let other: fail("there is no kind of child \(other)")
        }
    }
}

/// Ends a child that cannot continue.
func fail(_ message: String) -> Never {
    StandardStream.error.write("<3>crudd-plugin-host: \(message)\n")
    exit(70)  // EX_SOFTWARE
}
