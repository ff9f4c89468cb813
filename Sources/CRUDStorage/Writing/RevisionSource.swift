import CLinux

/// Makes revisions that no record ever had before: 100 random bits each, as `4h8k2m9q0t5vw3fx7rba`.
///
/// Among as many revisions as a record can get they do not repeat, and restarts, restored backups and several sources
/// are kept apart without anything that would have to be remembered. Nor do they tell how many there are, which readers
/// of one collection could compare to learn how much is written to others. Digits are those of Crockford's base 32, so
/// that a revision is safe in JSON, a file's attribute or a shell.
package struct RevisionSource {
    /// Random bytes, of which so many are left.
    private var pool = [UInt8](repeating: 0, count: Self.poolBytes)
    private var left = 0

    /// As many as the kernel returns whole, even if a signal comes, and without waiting once it has started.
    private static let poolBytes = 256
    private static let count = 20
    private static let digits = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)

    package init() {}

    /// The next revision, as ASCII.
    package mutating func next() -> [UInt8] {
        if left < Self.count { fill() }
        left -= Self.count
        return pool[left..<left + Self.count].map { Self.digits[Int($0 & 31)] }
    }

    private mutating func fill() {
        let filled = pool.withUnsafeMutableBytes { getrandom($0.baseAddress, $0.count, 0) }
        // Where a filter of system calls forbids it, Swift has other ways.
        if filled != Self.poolBytes { for index in pool.indices { pool[index] = .random(in: 0...255) } }
        left = Self.poolBytes
    }
}
