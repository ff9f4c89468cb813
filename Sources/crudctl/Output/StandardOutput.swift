import ArgumentParser
import Glibc

/// The output for results.
enum StandardOutput {
    static func write(_ bytes: some Collection<UInt8>) throws {
        guard !FileOutput.write(bytes, to: STDOUT_FILENO) else { return }
        if errno == EPIPE {
            // The reader has closed the pipe, as in `crudctl … | head`: end by SIGPIPE, as other programs do. NIO
            // ignores the signal.
            signal(SIGPIPE, SIG_DFL)
            raise(SIGPIPE)
        }
        StandardError.write("crudctl: cannot write the result: \(ErrorNumber.message)\n")
        throw ExitCode(EX_IOERR)
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
