/// What a record holds: the number of the write that has replaced it whole, and that of the last patch after it.
///
/// All members of the JSON follow from the two numbers, so that a torn or foreign item is noticed. It fits into every
/// format.
package struct Item: Hashable, Sendable, CustomStringConvertible {
    package let number: Int
    package var patch = 0

    /// How many values the member `k` has.
    package static let keys = 5

    package var description: String { "\(number)/\(patch)" }

    package var key: String { "k\(number % Self.keys)" }

    /// Some items are longer than what a read returns at once.
    private var text: String {
        String(repeating: "\(number) ", count: number % 16 == 0 ? 40_000 / "\(number) ".utf8.count : 4)
    }

    /// Its JSON.
    package var json: String {
        #"{"n":\#(number),"k":\#(JSON.quote(key)),"p":\#(patch),"text":"\#(text)"}"#
    }

    package init(number: Int, patch: Int = 0) {
        self.number = number
        self.patch = patch
    }

    /// - Parameter isWhole: whether `json` has all members, not only `n`, `k` and `p`.
    /// - Returns: nil for anything that no write has made.
    package init?(_ json: JSON?, isWhole: Bool = true) {
        guard let number = json?["n"]?.integer, let patch = json?["p"]?.integer else { return nil }
        self.init(number: number, patch: patch)
        guard json?["k"]?.string == key, json?.members?.count == (isWhole ? 4 : 3) else { return nil }
        if isWhole, json?["text"]?.string != text { return nil }
    }
}
