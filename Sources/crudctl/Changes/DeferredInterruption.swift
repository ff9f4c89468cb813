import Glibc
import Synchronization

/// A piece of work that no interruption divides: the signals by which people and systems end a command take effect
/// after it.
enum DeferredInterruption {
    private static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
    /// The signal that has come; 0: none.
    private static let arrived = Atomic<Int32>(0)

    static func during<Result>(_ body: () throws -> Result) rethrows -> Result {
        arrived.store(0, ordering: .relaxed)
        // A handler, and no mask: any thread of the process may get the signal.
        let former = signals.map { number in
            signal(number) { DeferredInterruption.arrived.store($0, ordering: .relaxed) }
        }
        defer {
            for (number, action) in zip(signals, former) { signal(number, action) }
            let number = arrived.load(ordering: .relaxed)
            if number != 0 { raise(number) }
        }
        return try body()
    }
}
