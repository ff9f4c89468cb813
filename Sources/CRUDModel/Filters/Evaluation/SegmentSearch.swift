import CRUDJSON

/// The search for a segment of a pattern in a text, in time that is linear in the text.
///
/// It simulates all attempts to match at once, one bit for each token (Shift-And: Baeza-Yates and Gonnet, "A New
/// Approach to Text Searching", 1992). A bit is set while the tokens up to it match the text that ends at the present
/// byte. The bit of a `_` that has matched the first byte of a code point stays set during the others.
struct SegmentSearch {
    /// The tokens without the `_` at both ends.
    private let core: ArraySlice<PatternToken>
    /// How many `_` there are before and behind them.
    private let (leading, trailing): (Int, Int)

    /// Up to so many comparisons are cheaper than to set up the bits.
    private static let maximumComparisons = 1024
    /// About what a search costs that looks at next to nothing, in bytes that are looked at.
    private static let leastWork = 64

    /// - Parameter tokens: at least one.
    init(_ tokens: ArraySlice<PatternToken>) {
        let rest = tokens.drop { $0 == .one }
        leading = tokens.count - rest.count
        trailing = rest.reversed().prefix { $0 == .one }.count
        core = rest.dropLast(trailing)
    }

    /// Where the first match in a range of the text ends; nil if there is none, or the work has been stopped.
    func end(in text: Span<UInt8>, _ range: Range<Int>, _ work: inout Work) -> Int? {
        guard let start = skip(leading, from: range.lowerBound, text, range.upperBound),
            let end = coreEnd(in: text, start..<range.upperBound, &work)
        else { return nil }
        return skip(trailing, from: end, text, range.upperBound)
    }

    private func skip(_ count: Int, from start: Int, _ text: Span<UInt8>, _ limit: Int) -> Int? {
        var index = start
        for _ in 0..<count {
            guard index < limit else { return nil }
            index = LikePattern.scalarEnd(index, text)
        }
        return index
    }

    private func coreEnd(in text: Span<UInt8>, _ range: Range<Int>, _ work: inout Work) -> Int? {
        guard !core.isEmpty else { return range.lowerBound }
        // Each token takes a byte at least.
        guard range.count >= core.count, work.take(Self.leastWork) else { return nil }
        guard range.count * core.count <= Self.maximumComparisons else {
            return coreEndByBits(in: text, range, &work)
        }
        for start in range {
            if let end = LikePattern.end(of: core, at: start, text, range.upperBound) { return end }
        }
        return nil
    }

    private func coreEndByBits(in text: Span<UInt8>, _ range: Range<Int>, _ work: inout Work) -> Int? {
        let words = (core.count + 63) / 64
        guard work.take(Self.maskCount * words) else { return nil }
        let masks = masks(words)
        return words == 1
            ? end(in: text, range, masks.span, &work) : end(in: text, range, masks.span, words: words, &work)
    }

    /// One for each byte, and one for those that continue a code point.
    private static let maskCount = 257

    /// For each byte, as many words as the tokens need: the bits of the tokens that it matches. Behind those of all
    /// bytes, the bits of the tokens that stay set at a byte that continues a code point, which are those of `_`.
    private func masks(_ words: Int) -> [UInt64] {
        var masks = [UInt64](repeating: 0, count: Self.maskCount * words)
        for (position, token) in core.enumerated() {
            let (word, bit) = (position / 64, UInt64(1) << UInt64(position % 64))
            switch token {
            case .byte(let byte): masks[Int(byte) * words + word] |= bit
            case .one: masks[256 * words + word] |= bit
            }
        }
        for word in 0..<words where masks[256 * words + word] != 0 {
            for byte in UInt8.min...UInt8.max where !byte.isContinuation {
                masks[Int(byte) * words + word] |= masks[256 * words + word]
            }
        }
        return masks
    }

    /// The search with up to 64 tokens.
    private func end(
        in text: Span<UInt8>, _ range: Range<Int>, _ masks: Span<UInt64>, _ work: inout Work
    ) -> Int? {
        let last = UInt64(1) << UInt64(core.count - 1)
        let staying = masks[256]
        var state: UInt64 = 0
        var index = range.lowerBound
        while index < range.upperBound {
            let start = index
            let end = min(start + Work.interval, range.upperBound)
            while index < end {
                let byte = text[index]
                state = (state &<< 1 | 1) & masks[Int(byte)] | (byte.isContinuation ? state & staying : 0)
                index &+= 1
                if state & last != 0 { return work.take(index - start) ? index : nil }
            }
            guard work.take(end - start) else { return nil }
        }
        return nil
    }

    /// The search with more of them. Words behind the last one that has a bit set are passed over.
    private func end(
        in text: Span<UInt8>, _ range: Range<Int>, _ masks: Span<UInt64>, words: Int, _ work: inout Work
    ) -> Int? {
        let last = UInt64(1) << UInt64((core.count - 1) % 64)
        var state = [UInt64](repeating: 0, count: words)
        var used = 1
        for index in range {
            let byte = text[index]
            var carry: UInt64 = 1
            var nextUsed = 1
            for word in 0..<min(used + 1, words) {
                let old = state[word]
                var new = (old &<< 1 | carry) & masks[Int(byte) * words + word]
                if byte.isContinuation { new |= old & masks[256 * words + word] }
                carry = old &>> 63
                state[word] = new
                if new != 0 { nextUsed = word + 1 }
            }
            guard work.take(used) else { return nil }
            used = nextUsed
            if state[words - 1] & last != 0 { return index + 1 }
        }
        return nil
    }
}
