import CRUDModel
import Glibc

/// The output for results.
enum StandardOutput {
    static let isTerminal = isatty(STDOUT_FILENO) == 1

    /// Writes text that clients or the daemon have made: to a terminal with what could steer it escaped, to anything
    /// else as it is.
    ///
    /// - Throws: `internal_error` if it cannot be written: `no_space` would promise that nothing was applied.
    static func write(_ bytes: some Collection<UInt8>) throws {
        let bytes = Array(bytes)
        guard isTerminal else { return try writeComposed(bytes) }
        var visible: [UInt8] = []
        visible.appendVisible(bytes.span, keepsLines: true)
        try writeComposed(visible)
    }

    /// Writes a result, by a pager where it is longer than the screen.
    ///
    /// - Parameter isComposed: whether it may steer a terminal, as what others have made in it has been escaped.
    /// - Throws: as ``write(_:)``.
    static func page(_ bytes: [UInt8], isComposed: Bool) throws {
        guard isTerminal else { return try writeComposed(bytes) }
        var visible: [UInt8] = []
        if isComposed { visible = bytes } else { visible.appendVisible(bytes.span, keepsLines: true) }
        try Pager.write(visible)
    }

    /// Writes text that may steer a terminal: whoever has composed it has escaped what others have made.
    ///
    /// - Throws: as ``write(_:)``.
    static func writeComposed(_ bytes: some Collection<UInt8>) throws {
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
    private static let isTerminal = isatty(STDERR_FILENO) == 1

    /// Writes text; to a terminal with what could steer it escaped.
    static func write(_ text: String) {
        guard isTerminal else { return writeComposed(text) }
        var visible: [UInt8] = []
        visible.appendVisible(Array(text.utf8).span, keepsLines: true)
        writeComposed(String(decoding: visible, as: UTF8.self))
    }

    /// Writes text that may steer a terminal.
    static func writeComposed(_ text: String) {
        Pager.finish()
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
            } else if !FileWait.isOver(file, POLLOUT) {
                return false
            }
        }
        return true
    }
}

enum FileInput {
    /// Reads what is there, at most as much as the buffer holds: 0 at the end, below 0, with errno set, if that fails.
    static func read(_ file: Int32, into buffer: inout [UInt8]) -> Int {
        while true {
            // The call writes at most the size of the buffer.
            let count = buffer.withUnsafeMutableBytes { unsafe Glibc.read(file, $0.baseAddress, $0.count) }
            if count >= 0 || !FileWait.isOver(file, POLLIN) { return count }
        }
    }
}

/// Waiting for a file that another program has set to O_NONBLOCK: the setting belongs to the open file, which programs
/// share.
private enum FileWait {
    /// Whether a call that has failed is to be repeated: it was interrupted, or waits are over that it did not make.
    static func isOver(_ file: Int32, _ event: Int32) -> Bool {
        if errno == EINTR { return true }
        guard errno == EAGAIN || errno == EWOULDBLOCK else { return false }
        var waiting = pollfd(fd: file, events: Int16(event), revents: 0)
        return poll(&waiting, 1, -1) > 0 || errno == EINTR
    }
}
