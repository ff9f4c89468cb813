/// How long a transaction that writes records waits for records that other sessions have locked. It holds up the
/// renewal of the lease, which may take ``LeaseKeeper/replyTimeoutMilliseconds``.
struct BlockLimits {
    let lockMilliseconds: Int64
    /// Of a statement, where locks are those of other servers and have no limit of their own.
    let statementMilliseconds: Int64

    static let first = BlockLimits(lockMilliseconds: 1000, statementMilliseconds: 2000)
    /// While it is being found out which records are locked, and for some time after that.
    static let known = BlockLimits(lockMilliseconds: 100, statementMilliseconds: 500)
    /// The same where the session may be another daemon's, of which several may be before this one.
    static let knownAmongDaemons = BlockLimits(lockMilliseconds: 500, statementMilliseconds: 1000)
    /// For further locks of a transaction that has some, where another one may wait for those.
    static let furtherLockMilliseconds: Int64 = 50
    /// How long a transaction may do nothing where other daemons wait for what it has locked.
    static let idleMilliseconds: Int64 = 800
    /// That time, in nanoseconds.
    static let memory: Int64 = 5_000_000_000
}
