import CLinux
import Glibc

/// A POSIX thread that runs one closure.
package struct Thread {
    private final class Start {
        let name: String
        let body: @Sendable () -> Void

        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = String(decoding: name.utf8.prefix(15), as: UTF8.self)
            self.body = body
        }
    }

    private let thread: pthread_t

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - name: for `ps -L` and debuggers; its first 15 bytes are used.
    ///   - stackBytes: the size of its stack; nil is the system's default.
    /// - Throws: ``ThreadFailure`` where the system cannot start another thread.
    package init(
        named name: String, stackBytes: Int? = nil, _ body: @escaping @Sendable () -> Void
    ) throws(ThreadFailure) {
        let start = Unmanaged.passRetained(Start(name, body))
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        if let stackBytes { pthread_attr_setstacksize(&attributes, stackBytes) }
        var thread = pthread_t()
        let code = pthread_create(
            &thread, &attributes,
            { argument in
                // The argument is the `Start` retained above; this thread owns it now.
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                clinux_name_thread(start.name)
                start.body()
                return nil
            }, start.toOpaque())
        guard code == 0 else {
            start.release()
            throw ThreadFailure(code: code)
        }
        self.thread = thread
    }

    /// Has the thread that calls it wait.
    package static func pause(_ duration: Duration) {
        usleep(UInt32(clamping: Int(duration / .microseconds(1))))
    }

    /// Nobody is going to wait until the closure has returned.
    package func detach() {
        pthread_detach(thread)
    }

    /// Lowers the priority of the thread that calls it, where the system lets it.
    package static func lowerPriority(by niceness: Int32) {
        // On Linux, 0 is the calling thread.
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, niceness)
    }

    /// Waits until the closure has returned.
    package func join() {
        pthread_join(thread, nil)
    }
}

/// The system could not start a thread; `code` is its errno.
package struct ThreadFailure: Error {
    package let code: Int32
}
