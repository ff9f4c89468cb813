import CRUDModel
import Glibc

/// The output for results.
enum StandardOutput {
    /// - Throws: `internal_error` if it cannot be written: `no_space` would promise that nothing was applied.
    static func write(_ bytes: some Collection<UInt8>) throws {
        guard !FileOutput.write(bytes, to: STDOUT_FILENO) else { return }
        if errno == EPIPE { endByBrokenPipe() }
        throw CRUDError(.internalError, "cannot write the result: \(ErrorNumber.message)")
    }

    /// Ends the process if the output is a pipe whose reader has closed it, although there is nothing to write.
    static func endIfNobodyReads() {
        var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        if poll(&output, 1, 0) == 1, output.revents & Int16(POLLERR) != 0 { endByBrokenPipe() }
    }

    /// The reader has closed the pipe, as in `crudctl … | head`: ends by SIGPIPE, as other programs do. NIO ignores the
    /// signal.
    private static func endByBrokenPipe() {
        signal(SIGPIPE, SIG_DFL)
        raise(SIGPIPE)
    }
}

/// The output for everything else.
enum StandardError {
    static func write(_ text: String) {
        // There is no other place to report a failure of this.
        _ = FileOutput.write(text.utf8, to: STDERR_FILENO)
    }
}

enum FileOutput {
    /// Writes all of `bytes`; returns false, with errno set, if that fails.
    static func write(_ bytes: some Collection<UInt8>, to file: Int32) -> Bool {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            // The call reads at most the remaining bytes.
            let count = rest.withUnsafeBytes { unsafe Glibc.write(file, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}
