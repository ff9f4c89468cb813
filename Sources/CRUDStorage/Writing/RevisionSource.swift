import Glibc

/// Makes revisions that no record ever had before.
///
/// A revision is 64 random bits, drawn when the source is made, and a counter: `4h8k2m9q0t5vw-3f`. The random part
/// keeps restarts, restored backups and several sources apart without anything that would have to be remembered; the
/// counter does the rest. Digits are those of Crockford's base 32, so that a revision is safe in JSON, a file's
/// attribute or a shell.
package struct RevisionSource {
    private let prefix: [UInt8]
    private var counter: UInt64 = 0

    private static let digits = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)

    package init() {
        var generator = SystemRandomNumberGenerator()
        self.init(seed: generator.next())
    }

    init(seed: UInt64) {
        prefix = Self.text(seed, leastDigits: 13) + [UInt8(ascii: "-")]
    }

    /// The next revision, as ASCII.
    package mutating func next() -> [UInt8] {
        counter += 1
        return prefix + Self.text(counter, leastDigits: 1)
    }

    private static func text(_ number: UInt64, leastDigits: Int) -> [UInt8] {
        var rest = number
        var reversed: [UInt8] = []
        while rest > 0 || reversed.count < leastDigits {
            reversed.append(digits[Int(rest & 31)])
            rest >>= 5
        }
        return reversed.reversed()
    }
}
