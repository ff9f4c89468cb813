/// What the peers of one event loop make it hold: bytes of requests that have come in part or whole, what these may be
/// replied with, and replies that have not been read. Everything is charged before it is held.
///
/// A user may hold as much as is left free: of M bytes, O of them held by others, no more than (M − O) / 2. So nobody
/// ever holds more than half, and whoever comes later finds room, whatever those before him do.
///
/// One session of each user at a time may exceed that, so that a request that needs more than its user's whole share,
/// or finds it filled by what its own user does not read, is executed all the same, one after another.
final class BufferLedger {
    var maximum: Int
    // Not checked for exclusive access at run time, which every write would pay for: one thread uses it.
    @exclusivity(unchecked) private(set) var held = 0
    private var users: [UInt32: WeakAccount] = [:]

    private struct WeakAccount {
        weak var account: UserAccount?
    }

    init(maximum: Int) {
        self.maximum = maximum
    }

    /// The account of a user, which lives as long as anything is charged to it.
    func account(of uid: UInt32) -> UserAccount {
        if let account = users[uid]?.account { return account }
        let account = UserAccount(of: uid, in: self)
        users[uid] = WeakAccount(account: account)
        return account
    }

    fileprivate func forget(_ uid: UInt32) {
        if users[uid]?.account == nil { users[uid] = nil }
    }

    fileprivate func charge(_ bytes: Int) { held += bytes }

    /// How much a user may hold who holds `own` now.
    fileprivate func share(holding own: Int) -> Int { (maximum - (held - own)) / 2 }
}

/// What one user's sessions make an event loop hold together.
final class UserAccount {
    private let uid: UInt32
    private let ledger: BufferLedger
    // As of ``BufferLedger``.
    @exclusivity(unchecked) private var held = 0
    /// The session that may exceed the user's share.
    // As of ``BufferLedger``. Not a reference, for counting it would cost more than all the rest.
    @exclusivity(unchecked) fileprivate var overdrawn: ObjectIdentifier?
    /// The pass in which the user's sessions were last found to wait for room; see ``SessionSet``.
    var lastBlockedPass: UInt64 = 0

    fileprivate init(of uid: UInt32, in ledger: BufferLedger) {
        self.uid = uid
        self.ledger = ledger
    }

    deinit { ledger.forget(uid) }

    fileprivate func charge(_ bytes: Int) {
        held += bytes
        ledger.charge(bytes)
    }

    fileprivate func hasRoom(for bytes: Int) -> Bool { held + bytes <= ledger.share(holding: held) }
}

/// What one session makes an event loop hold. It outlives its connection where its requests do.
final class SessionAccount {
    /// What every frame touches. Not checked for exclusive access at run time: one thread uses it, and nothing that is
    /// called during an access comes back to it.
    private struct State {
        /// Of requests: their text, and what they may be replied with.
        var requests = 0
        /// How much of that is of requests that wait.
        var waiting = 0
        /// Of the stream: what has come of a frame or has been granted to it, and replies that have not been sent.
        var buffered = 0
    }

    @exclusivity(unchecked) private var state = State()
    let user: UserAccount

    /// What a session may hold however much its user does.
    static let modestBytes = 64 << 10
    /// What a stream buffers between two iterations is not worth being charged.
    private static let negligibleBytes = 4096

    /// Whether there is room, and if not, who has to make some.
    enum Room {
        case available
        /// The session holds as much as it may.
        case withheldBySession
        /// The user's sessions hold as much as they may together.
        case withheldByUser
    }

    init(_ user: UserAccount) {
        self.user = user
    }

    deinit {
        user.charge(-held)
        if isOverdrawn { user.overdrawn = nil }
    }

    /// What it holds.
    var held: Int { state.requests + state.buffered }

    // MARK: Charges

    /// Charges what a request takes; gives it back where `bytes` is negative.
    func charge(_ bytes: Int) {
        state.requests += bytes
        user.charge(bytes)
        if bytes < 0 { endOverdraft() }
    }

    /// Notes that so many of the bytes that requests are charged for wait now; no longer where negative.
    func wait(_ bytes: Int) { state.waiting += bytes }

    /// Charges what the session's stream buffers now.
    func chargeBuffered(_ bytes: Int) {
        let bytes = bytes < Self.negligibleBytes ? 0 : bytes
        let change = bytes - state.buffered
        guard change != 0 else { return }
        state.buffered = bytes
        user.charge(change)
        if change < 0 { endOverdraft() }
    }

    // MARK: Room

    /// Whether the session holds so little that so many bytes more are allowed whatever others hold.
    ///
    /// - Parameter output: what the session has to send.
    func isModest(with bytes: Int, output: Int) -> Bool { state.requests + output + bytes <= Self.modestBytes }

    /// Whether so many bytes more may be held. What the stream buffers has to be charged.
    ///
    /// - Parameters:
    ///   - input: how much of it has been charged as input already, and makes way.
    ///   - output: what the session has to send.
    ///   - waiting: how much of what requests hold does not count where it alone is what the session holds; nil: what
    ///     all those hold that wait, of which one has to start.
    ///   - maximum: how much the session may hold.
    func room(for bytes: Int, replacing input: Int, output: Int, besides waiting: Int? = nil, maximum: Int) -> Room {
        let others = state.requests + output
        if others + bytes > maximum, others - (waiting ?? state.waiting) > Self.modestBytes {
            return .withheldBySession
        }
        if isOverdrawn || user.hasRoom(for: max(0, bytes - input)) { return .available }
        return .withheldByUser
    }

    // MARK: Overdraft

    /// Whether it is the session of its user that may exceed the user's share.
    var isOverdrawn: Bool { user.overdrawn == ObjectIdentifier(self) }

    /// Lets the session exceed its user's share until it holds little again, unless another one does.
    func overdraw() {
        if user.overdrawn == nil { user.overdrawn = ObjectIdentifier(self) }
    }

    /// The session holds little again, or is not going to need what it was allowed.
    func endOverdraft() {
        if isOverdrawn, held <= Self.modestBytes { user.overdrawn = nil }
    }
}
