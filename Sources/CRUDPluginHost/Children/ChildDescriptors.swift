import CLinux
import CRUDPluginABI
import Glibc

/// The pipe and the socket pairs between the daemon and a child: both ends until it has started, ours afterwards.
struct ChildDescriptors: ~Copyable {
    private var channels: [CInt] = []
    private var errors: CInt = -1
    private var theirs: [CInt] = []

    /// Makes a channel; returns the child's end.
    mutating func addSocket() throws(PluginFailure) -> CInt {
        var ends: [CInt] = [0, 0]
        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw Self.failure() }
        channels.append(ends[0])
        theirs.append(ends[1])
        return ends[1]
    }

    /// Makes the pipe for standard error; returns the child's end.
    mutating func addPipe() throws(PluginFailure) -> CInt {
        var ends: [CInt] = [0, 0]
        guard clinux_pipe(&ends) == 0 else { throw Self.failure() }
        errors = ends[0]
        theirs.append(ends[1])
        return ends[1]
    }

    /// Gives up our ends and closes the child's.
    mutating func take() -> (channels: [CInt], errors: CInt) {
        defer {
            channels = []
            errors = -1
        }
        return (channels, errors)
    }

    deinit {
        for descriptor in channels + theirs + [errors] where descriptor >= 0 { close(descriptor) }
    }

    private static func failure() -> PluginFailure {
        PluginFailure(
            status: CRUDD_UNAVAILABLE, message: "no channel to a child process: \(String(cString: strerror(errno)))")
    }
}
