import CLinux
import CRUDPluginABI

#if canImport(Glibc)
import Glibc
#endif

/// The thread that listens to a child: what it writes to standard error goes to the log, and its end is noticed when it
/// comes, whether or not anybody is asking it something.
struct ChildMonitor {
    private let thread: Thread

    /// - Parameters:
    ///   - errors: the reading end of the child's standard error, closed by the monitor.
    ///   - ended: called once, on the monitor's thread.
    /// - Throws: ``PluginFailure``, `unavailable`; `errors` is closed then.
    init(
        _ process: ChildProcess, name: String, errors: CInt, host: HostReference,
        ended: @escaping @Sendable (ChildProcess.Ending) -> Void
    ) throws(PluginFailure) {
        do throws(ThreadFailure) {
            thread = try Thread(named: "c:\(name)") {
                Self.listen(to: process, errors, host)
                close(errors)
                if let ending = process.reap() { ended(ending) }
            }
        } catch {
            close(errors)
            throw PluginFailure(unavailable: "no thread for a child process (errno \(error.code))")
        }
    }

    /// Waits until the child has ended and everything that it wrote is in the log.
    func join() { thread.join() }

    private static func listen(to process: ChildProcess, _ errors: CInt, _ host: HostReference) {
        var log = ChildLog { level, line in host.log(level, line) }
        defer { log.end() }
        var isOpen = true
        while true {
            var events = [
                pollfd(fd: process.handle, events: Int16(POLLIN), revents: 0),
                // A negative number is passed over.
                pollfd(fd: isOpen ? errors : -1, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&events, 2, -1) > 0 else { continue }
            if isOpen, events[1].revents != 0 { isOpen = read(errors, &log) }
            guard events[0].revents != 0 else { continue }
            // What was written before the end; whoever else holds the other end of the pipe is not waited for.
            while isOpen {
                var rest = pollfd(fd: errors, events: Int16(POLLIN), revents: 0)
                guard poll(&rest, 1, 0) > 0 else { return }
                isOpen = read(errors, &log)
            }
            return
        }
    }

    /// Takes what is there; false at the end.
    private static func read(_ errors: CInt, _ log: inout ChildLog) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
            let count = Glibc.read(errors, buffer.baseAddress, buffer.count)
            guard count > 0 else { return count < 0 && errno == EINTR }
            log.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            return true
        }
    }
}

/// The host as a backend sees it, usable from any thread as the contract says.
struct HostReference: @unchecked Sendable {
    // @unchecked: the contract allows its functions to be called from any thread while the backend lives.
    let pointer: UnsafePointer<crudd_host>

    func log(_ level: crudd_log_level, _ line: String) {
        var line = line
        line.withUTF8 { pointer.pointee.log(pointer.pointee.context, level, crudd_bytes($0)) }
    }
}
