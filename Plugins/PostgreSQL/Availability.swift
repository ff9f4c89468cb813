import CLinux
import CRUDPluginKit
import Glibc
import Synchronization

/// Whether the server can be used, and this daemon is the one that may. Any thread may use it.
final class Availability: Sendable {
    private struct State {
        /// Why not; nil while it can.
        var reason: String?
        /// Another daemon owns the schema: this never changes again while the backend is open.
        var isTakenOver = false
    }

    private let host: Host
    private let state = Mutex(State())
    /// Until when nobody else can own the schema: nanoseconds of ``Clock/boot``.
    private let ownedUntil = Atomic<Int64>(0)
    /// A write of this daemon may still take effect: its connection was lost, and nothing could prove what became of
    /// it. That never changes again while the backend is open.
    private let hasWriteInDoubt = Atomic<Bool>(false)
    /// Wakes the keeper of the lease; an eventfd.
    let wakeup: Int32

    init(_ host: Host) {
        self.host = host
        wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    }

    deinit {
        close(wakeup)
    }

    /// Why the server cannot be used; nil if it can.
    var failure: StorageFailure? {
        state.withLock { state in state.reason.map { StorageFailure(.unavailable, $0) } }
    }

    func check() throws(StorageFailure) {
        if let failure { throw failure }
    }

    /// Whether it is certain that no other daemon owns the schema, and that nothing is written but what this one knows.
    var isOwned: Bool {
        Clock.boot < ownedUntil.load(ordering: .relaxed) && !hasWriteInDoubt.load(ordering: .relaxed)
    }

    /// It is not known whether a write takes effect.
    func doubtWrite() {
        hasWriteInDoubt.store(true, ordering: .relaxed)
    }

    /// A connection was lost: the keeper finds out whether the server is.
    func suspect() {
        eventfd_write(wakeup, 1)
    }

    /// The server cannot be reached.
    func lost(_ reason: String) { set(reason) }

    /// Another daemon owns the schema.
    func takenOver(_ reason: String) {
        ownedUntil.store(0, ordering: .relaxed)
        set(reason, isTakenOver: true)
    }

    /// The server replies, and this daemon owns the schema.
    ///
    /// - Parameter time: until when, by ``Clock/boot``.
    func confirmed(until time: Int64) {
        ownedUntil.store(time, ordering: .relaxed)
        let isBack = state.withLock { state in
            guard state.reason != nil, !state.isTakenOver else { return false }
            state.reason = nil
            return true
        }
        if isBack { host.state(.up, "the server replies") }
    }

    private func set(_ reason: String, isTakenOver: Bool = false) {
        let isNews = state.withLock { state in
            if state.isTakenOver { return false }
            defer {
                state.reason = reason
                state.isTakenOver = isTakenOver
            }
            return state.reason == nil || isTakenOver
        }
        if isNews { host.state(.down, reason) }
        suspect()
    }
}
