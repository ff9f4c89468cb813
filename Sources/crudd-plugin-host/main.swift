import CLinux
import CRUDPluginHost
import Glibc

// The first program of every child process of the daemon, which starts it as
//
//     crudd-plugin-host PARENT MEMORY plugin NAME FILE          a plugin: loaded here, served on descriptors 3 and 4
//     crudd-plugin-host PARENT MEMORY command FILE WORD...      an executable: becomes FILE, served by it on 0 and 1
//
// PARENT is the daemon's process id, MEMORY the most bytes of memory that the child may make its own. Before anything
// else runs, the process is tied to its parent's life, held to its limits and rid of whatever it may have inherited.

func fail(_ message: String) -> Never {
    let line = Array("<3>crudd-plugin-host: \(message)\n".utf8)
    _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    exit(70)  // EX_SOFTWARE
}

let words = CommandLine.arguments
guard words.count >= 6, let parent = pid_t(words[1]), let memory = rlim_t(words[2]) else {
    fail("this program is started by crudd alone")
}
guard clinux_die_with(parent) == 0 else { fail("the daemon has gone") }
Confinement.apply(memoryBytes: memory)

switch words[3] {
case "plugin":
    _ = clinux_close_from(Service.firstChannel + 2)
    exit(Service.run(plugin: words[5], named: words[4]))
case "command":
    _ = clinux_close_from(STDERR_FILENO + 1)
    Confinement.become(words[4], Array(words[5...]))
case let other:
    fail("there is no \(other)")
}
