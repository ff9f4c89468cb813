import CLinux
import CRUDPluginKit
import Glibc
import Synchronization

/// Which server is used, whether it can be, and whether this daemon is the one that may write there. Any thread may use
/// it.
///
/// The keeper of the lease is the only one that chooses a server and that finds out what is true after something has
/// gone wrong; all others ask here, and tell when they are in *doubt*: a connection was lost, or it is unknown what has
/// become of a commit. Then nothing is read or written until the keeper has answered: it has raised the number of the
/// lease, in a commit that the server has confirmed without a warning. That proves three things. The server replicates
/// what it commits, so that everything that is visible there was replicated before (its log is sequential). No
/// transaction of a lost connection is still in progress. And none can be committed any more.
final class Availability: Sendable {
    private struct State {
        /// nil while the keeper looks for one.
        var server: ChosenServer?
        var generations: UInt64 = 0
        /// Why nothing can be used; nil while it can, or that is being found out.
        var reason: String?
        /// Another daemon owns the schema: this never changes again while the backend is open.
        var isTakenOver = false
        /// How often there was doubt, and up to which of these it has been answered.
        var doubts: UInt64 = 0
        var answered: UInt64 = 0
        /// Whether the server itself is in doubt, and not only a connection to it.
        var mustChoose = false
        /// Whether the host has been told that the storage is down.
        var isReportedDown = false
        /// The last fail-over, and until when the administrator is told of it, by ``Clock/boot``.
        var failOver: (text: String, end: Int64)?
        /// Why changes are late.
        var delay: String?

        /// What the administrator is told beside that the storage is up.
        var notice: String { [failOver?.text, delay].compactMap(\.self).joined(separator: "; ") }

        var isCertain: Bool { server != nil && reason == nil && doubts == answered }
    }

    private let host: Host
    private let state = Mutex(State())
    /// Held while the host is told something, so that it hears of it in the order in which it came about.
    private let reports = Mutex(())
    /// The generation of the server while nothing is in doubt; else 0.
    private let certain = Atomic<UInt64>(0)
    /// The generation of the server; 0 while there is none.
    private let current = Atomic<UInt64>(0)
    /// Counts the answers: what was known of records before one may be out of date.
    private let answers = Atomic<UInt64>(1)
    /// Until when no other daemon can own the schema: nanoseconds of ``Clock/boot``.
    private let ownedUntil = Atomic<Int64>(0)
    /// Wakes the keeper of the lease; an eventfd.
    let wakeup: Int32

    /// How long a caller waits for a server to be chosen, and for doubt to be answered.
    private static let longestChoice: Int64 = 1_000_000_000
    private static let pauseMilliseconds: Int32 = 1
    /// For how long the administrator is told of a fail-over.
    private static let noticeTime: Int64 = 3600 * 1_000_000_000

    init(_ host: Host) {
        self.host = host
        wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    }

    deinit {
        close(wakeup)
    }

    // MARK: Asking

    /// The server, as soon as nothing is in doubt.
    func server() throws(StorageFailure) -> ChosenServer {
        let limit = Clock.monotonic + Self.longestChoice
        while true {
            let (server, reason) = state.withLock { ($0.isCertain ? $0.server : nil, $0.reason) }
            if let server { return server }
            if let reason { throw StorageFailure(.unavailable, reason) }
            guard Clock.monotonic < limit else {
                throw StorageFailure(.unavailable, "it is being found out which server can be used")
            }
            poll(nil, 0, Self.pauseMilliseconds)
        }
    }

    /// - Parameter generation: of the server that is being asked; nil: any.
    func check(_ generation: UInt64? = nil) throws(StorageFailure) {
        if let generation, current.load(ordering: .acquiring) == generation { return }
        let reason = state.withLock { state in
            state.reason ?? (generation == nil ? nil : "another server is being chosen")
        }
        if let reason { throw StorageFailure(.unavailable, reason) }
    }

    /// Whether connections of a generation lead to the server that is used now.
    func isCurrent(_ generation: UInt64) -> Bool { current.load(ordering: .acquiring) == generation }

    /// Whether, moreover, nothing is in doubt.
    func isCertain(_ generation: UInt64) -> Bool { certain.load(ordering: .acquiring) == generation }

    /// A number that stays the same as long as only this daemon can have written; 0: that cannot be told.
    var version: UInt64 {
        guard Clock.boot < ownedUntil.load(ordering: .acquiring) else { return 0 }
        return certain.load(ordering: .acquiring) == 0 ? 0 : answers.load(ordering: .acquiring)
    }

    // MARK: Doubting

    /// A connection was lost, or it is not known what has become of a commit.
    ///
    /// - Parameter server: whether it is the server that is not the right one.
    func doubt(server: Bool = false) {
        state.withLock { state in
            state.doubts += 1
            if server { state.mustChoose = true }
            certain.store(0, ordering: .releasing)
        }
        wake()
    }

    /// Waits until all doubt up to now has been answered, whatever has to happen before.
    ///
    /// - Returns: the server; nil where that takes longer.
    func answer(until limit: Int64) -> ChosenServer? {
        let doubts = state.withLock { $0.doubts }
        while true {
            let (server, isTakenOver) = state.withLock { state in
                (state.answered >= doubts && state.reason == nil ? state.server : nil, state.isTakenOver)
            }
            if server != nil || isTakenOver || Clock.monotonic >= limit { return server }
            poll(nil, 0, Self.pauseMilliseconds)
        }
    }

    /// Has the host refuse what would only wait for an answer.
    func report(_ reason: String) {
        if state.withLock({ $0.doubts != $0.answered }) { set(reason, isTakenOver: false) }
    }

    /// Wakes the keeper.
    func wake() { eventfd_write(wakeup, 1) }

    // MARK: The keeper

    /// What there is to be answered.
    var question: (doubts: UInt64, isOpen: Bool, mustChoose: Bool) {
        state.withLock { ($0.doubts, $0.doubts != $0.answered, $0.mustChoose) }
    }

    /// The keeper looks for a server. Until it has found one no connection is used.
    func choosing() {
        state.withLock { state in
            state.server = nil
            certain.store(0, ordering: .releasing)
            current.store(0, ordering: .releasing)
        }
    }

    /// The server cannot be used.
    func lost(_ reason: String) {
        choosing()
        set(reason, isTakenOver: false)
    }

    /// Another daemon owns the schema.
    func takenOver() {
        choosing()
        ownedUntil.store(0, ordering: .releasing)
        set("another daemon has taken the schema over", isTakenOver: true)
    }

    /// The lease has been renewed.
    ///
    /// - Parameter time: until when no other daemon can own the schema, by ``Clock/boot``.
    func renewed(until time: Int64) { ownedUntil.store(time, ordering: .releasing) }

    /// The number of the lease has been raised, in a commit that the server has confirmed.
    ///
    /// - Parameters:
    ///   - doubts: how often there had been doubt before that was begun.
    ///   - server: another one from now on; nil: it has remained.
    ///   - failOver: for the administrator, where that is not the one that was used before.
    ///   - time: until when no other daemon can own the schema, by ``Clock/boot``.
    func confirmed(
        _ doubts: UInt64, _ server: (address: ServerAddress, identity: ServerIdentity)? = nil,
        _ failOver: String? = nil, until time: Int64
    ) {
        ownedUntil.store(time, ordering: .releasing)
        reports.withLock { _ in
            let (isBack, text) = state.withLock { confirm(&$0, doubts, server) }
            if isBack { host.state(.up, "\(text) replies") }
            let notice = state.withLock { state in
                if let failOver { state.failOver = (failOver, Clock.boot + Self.noticeTime) }
                return state.notice
            }
            if failOver != nil || isBack && !notice.isEmpty { host.state(.up, notice) }
        }
    }

    /// - Returns: whether the host was told that the storage is down, and what is used now.
    private func confirm(
        _ state: inout State, _ doubts: UInt64, _ server: (address: ServerAddress, identity: ServerIdentity)?
    ) -> (isBack: Bool, text: String) {
        if state.isTakenOver { return (false, "") }
        if let server {
            state.generations += 1
            state.server = ChosenServer(
                generation: state.generations, address: server.address, identity: server.identity)
            state.mustChoose = false
        }
        state.answered = max(state.answered, doubts)
        state.reason = nil
        answers.add(1, ordering: .acquiringAndReleasing)
        let generation = state.server?.generation ?? 0
        current.store(generation, ordering: .releasing)
        certain.store(state.isCertain ? generation : 0, ordering: .releasing)
        defer { state.isReportedDown = false }
        return (state.isReportedDown, state.server?.description ?? "")
    }

    /// Tells the administrator no more of a fail-over that was long ago.
    func endNotice() {
        reports.withLock { _ in
            let notice: String? = state.withLock { state in
                guard let end = state.failOver?.end, Clock.boot >= end else { return nil }
                state.failOver = nil
                return state.notice
            }
            if let notice { host.state(.up, notice) }
        }
    }

    /// Tells the administrator why changes are late; nil: they are not any more.
    func note(delay: String?) {
        reports.withLock { _ in
            let notice: String? = state.withLock { state in
                state.delay = delay
                return state.isReportedDown ? nil : state.notice
            }
            if let notice { host.state(.up, notice) }
        }
    }

    private func set(_ reason: String, isTakenOver: Bool) {
        reports.withLock { _ in
            let isNews = state.withLock { state in
                if state.isTakenOver { return false }
                defer { state.isReportedDown = true }
                state.reason = reason
                state.isTakenOver = isTakenOver
                state.failOver = nil
                return !state.isReportedDown || isTakenOver
            }
            if isNews { host.state(.down, reason) }
        }
    }
}
