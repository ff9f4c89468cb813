import CLinux
import CRUDPluginABI
import CRUDThreads
import Glibc

/// The thread that monitors a child, whether or not a call is in progress: it logs what the child writes to standard
/// error, passes its notifications to the host, and notices its end.
struct ChildMonitor {
    private let thread: Thread

    /// How long the channel is not looked at after a call was in progress on it: that call receives what comes.
    private static let channelPause = Duration.milliseconds(100)

    /// What the monitor listens to, and whom it tells.
    struct Listening: Sendable {
        let process: ChildProcess
        /// The reading end of the child's standard error, closed by the monitor.
        let errors: CInt
        /// The channel for notifications; it stays open as long as it is listened to.
        let channel: ChildChannel
        let host: HostReference
        /// Called when the channel is readable: receives a notification unless a call is in progress, and returns
        /// whether there was one.
        let receiveNotification: @Sendable () -> Bool
        /// Called once, when the process has ended.
        let ended: @Sendable (ChildProcess.Ending) -> Void
    }

    /// - Throws: ``PluginFailure``, `unavailable`; `errors` is closed then.
    init(named name: String, _ listening: Listening) throws(PluginFailure) {
        do throws(ThreadFailure) {
            thread = try Thread(named: "c:\(name)") {
                Self.listen(listening)
                close(listening.errors)
                if let ending = listening.process.reap() { listening.ended(ending) }
            }
        } catch {
            close(listening.errors)
            throw PluginFailure(
                status: CRUDD_UNAVAILABLE, message: "no thread for a child process (errno \(error.code))")
        }
    }

    /// Waits until the child has ended and everything that it wrote is in the log.
    func join() { thread.join() }

    /// Listens until the process has ended.
    private static func listen(_ listening: Listening) {
        var log = ChildLog { level, line in listening.host.log(level, line) }
        defer { log.end() }
        var isErrorsOpen = true
        /// Until when the channel is not looked at.
        var pauseEnd: Duration?
        while true {
            var events = [
                pollfd(fd: listening.process.handle, events: Int16(POLLIN), revents: 0),
                // A negative number is passed over.
                pollfd(fd: isErrorsOpen ? listening.errors : -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: pauseEnd == nil ? listening.channel.descriptor : -1, events: Int16(POLLIN), revents: 0),
            ]
            let timeout = pauseEnd.map { ($0 - MonotonicTime.now).pollMilliseconds } ?? -1
            let count = poll(&events, 3, timeout)
            if let end = pauseEnd, MonotonicTime.now >= end { pauseEnd = nil }
            guard count > 0 else { continue }
            if isErrorsOpen, events[1].revents != 0 { isErrorsOpen = read(listening.errors, &log) }
            if events[2].revents != 0, !listening.receiveNotification() { pauseEnd = MonotonicTime.now + channelPause }
            guard events[0].revents != 0 else { continue }
            // What was written before the end. A process that the child has left behind may hold the pipe open, and may
            // keep writing.
            for _ in 0..<pipeBytes / readBytes where isErrorsOpen {
                var rest = pollfd(fd: listening.errors, events: Int16(POLLIN), revents: 0)
                guard poll(&rest, 1, 0) > 0 else { return }
                isErrorsOpen = read(listening.errors, &log)
            }
            return
        }
    }

    /// As much as a pipe holds, see pipe(7).
    private static let pipeBytes = 64 << 10
    private static let readBytes = 4 << 10

    /// Reads what is there; false at the end.
    private static func read(_ errors: CInt, _ log: inout ChildLog) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: readBytes, alignment: 1) { buffer in
            let count = Glibc.read(errors, buffer.baseAddress, buffer.count)
            guard count > 0 else { return count < 0 && errno == EINTR }
            log.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            return true
        }
    }
}
