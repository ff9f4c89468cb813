package import CLinux
import Glibc

/// Threads of a plugin.
package enum BackgroundThread {
    /// Starts a thread.
    ///
    /// - Returns: the thread, to be joined or detached; nil where the system has none.
    package static func start(named name: String, _ body: @escaping @Sendable () -> Void) -> pthread_t? {
        var thread = pthread_t()
        let work = Unmanaged.passRetained(Work(name, body))
        let code = pthread_create(
            &thread, nil,
            { work in
                // Retained above.
                Unmanaged<Work>.fromOpaque(work!).takeRetainedValue().run()
                return nil
            }, work.toOpaque())
        if code == 0 { return thread }
        work.release()
        return nil
    }

    /// Starts a thread that is not waited for.
    ///
    /// - Returns: false where the system has none.
    package static func detach(named name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
        guard let thread = start(named: name, body) else { return false }
        pthread_detach(thread)
        return true
    }

    private final class Work {
        private let name: String
        private let body: @Sendable () -> Void

        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }

        func run() {
            clinux_name_thread(name)
            body()
        }
    }
}
