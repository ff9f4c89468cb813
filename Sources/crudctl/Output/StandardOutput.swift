import ArgumentParser
import Glibc

/// Where results go.
enum StandardOutput {
    static func write(_ bytes: some Collection<UInt8>) throws {
        guard !FileOutput.write(Array(bytes), to: STDOUT_FILENO) else { return }
        if errno == EPIPE {
            // The reader has had enough, as with `crudctl … | head`: die as any program does that a pipe broke on. NIO has
            // the signal ignored.
            signal(SIGPIPE, SIG_DFL)
            raise(SIGPIPE)
        }
        StandardError.write("crudctl: cannot write the result: \(ErrorNumber.message)\n")
        throw ExitCode(EX_IOERR)
    }
}

/// Where everything else goes.
enum StandardError {
    static func write(_ text: String) {
        // If even this fails there is nobody left to tell.
        _ = FileOutput.write(Array(text.utf8), to: STDERR_FILENO)
    }
}

private enum FileOutput {
    /// Writes all of `bytes`; false, and errno set, if that cannot be.
    static func write(_ bytes: [UInt8], to file: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            // The call reads no further than the rest is long.
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
