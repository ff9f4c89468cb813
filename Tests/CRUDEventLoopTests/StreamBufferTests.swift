import Testing

@testable import CRUDEventLoop

@Suite struct StreamBufferTests {
    // The macros of Testing copy their operands, and a buffer cannot be copied.

    private func contents(_ buffer: borrowing StreamBuffer) -> [UInt8] {
        Array(buffer.bytes)
    }

    private func capacity(_ buffer: borrowing StreamBuffer) -> Int {
        buffer.capacity
    }

    @Test func appendsEveryKindOfPiece() {
        var buffer = StreamBuffer()
        buffer.append(UInt8(ascii: "a"))
        buffer.append("bc")
        buffer.append([UInt8]("de".utf8).span)
        [UInt8]("fg".utf8).withUnsafeBytes { buffer.append($0) }
        buffer.append(UnsafeRawBufferPointer(start: nil, count: 0))
        buffer.append(bigEndian: 0x3132_3334)
        #expect(contents(buffer) == [UInt8]("abcdefg1234".utf8))
    }

    @Test func writesALengthAfterwards() {
        var buffer = StreamBuffer()
        buffer.append("before")
        let start = buffer.count
        buffer.append(bigEndian: 0)
        buffer.append("hello")
        buffer.overwrite(at: start, bigEndian: UInt32(buffer.count - start - 4))
        #expect(contents(buffer) == [UInt8]("before\0\0\0\u{5}hello".utf8))
    }

    @Test func truncatesToAMark() {
        var buffer = StreamBuffer()
        buffer.append("kept")
        let mark = buffer.count
        buffer.append("dropped")
        buffer.truncate(to: mark)
        buffer.append("!")
        #expect(contents(buffer) == [UInt8]("kept!".utf8))
    }

    @Test(arguments: [0, 4, 100_000])
    func keepsLittleOfWhatWasTruncated(count: Int) {
        var buffer = StreamBuffer()
        let kept = [UInt8](repeating: 7, count: count)
        buffer.append(kept.span)
        buffer.append([UInt8](repeating: 1, count: 1 << 20).span)
        buffer.truncate(to: count)
        buffer.shrink()
        #expect(capacity(buffer) == count)
        buffer.append("!")
        #expect(contents(buffer) == kept + [UInt8(ascii: "!")])
    }

    /// What a peer has read of a long reply takes no memory, though it does not read the rest.
    @Test func keepsLittleOfWhatWasRemoved() {
        var buffer = StreamBuffer()
        buffer.append(pattern(1 << 20).span)
        buffer.removeFirst(1000)
        #expect(capacity(buffer) >= 1 << 20)
        buffer.removeFirst(1 << 20 - 1010)
        #expect(capacity(buffer) == 10)
        #expect(contents(buffer) == Array(pattern(1 << 20).suffix(10)))
        buffer.append("!")
        #expect(contents(buffer) == pattern(1 << 20).suffix(10) + [UInt8(ascii: "!")])
    }

    @Test func offsetsCountFromTheFirstByteThatIsThere() {
        var buffer = StreamBuffer()
        buffer.append("gone")
        buffer.append(bigEndian: 0)
        buffer.removeFirst(4)
        buffer.overwrite(at: 0, bigEndian: 0x3132_3334)
        #expect(contents(buffer) == [UInt8]("1234".utf8))
    }

    @Test func ownsNoMemoryWhenEmpty() {
        var buffer = StreamBuffer()
        #expect(capacity(buffer) == 0)
        buffer.append(pattern(100_000).span)
        #expect(capacity(buffer) >= 100_000)
        buffer.removeFirst(100_000)
        #expect(contents(buffer) == [])
        #expect(capacity(buffer) == 0)
    }

    @Test func reservesExactlyWhatIsAskedFor() {
        var buffer = StreamBuffer()
        buffer.append("some")
        buffer.removeFirst(2)
        buffer.reserve(1_000_000)
        #expect(capacity(buffer) == 1_000_000)
        #expect(contents(buffer) == [UInt8]("me".utf8))
    }

    @Test func agreesWithAnArrayWhateverIsDoneToIt() {
        var random = SystemRandomNumberGenerator()
        var buffer = StreamBuffer()
        var model: [UInt8] = []
        var largest = 0
        for _ in 0..<3000 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                let piece = pattern(Int.random(in: 0...9000, using: &random))
                buffer.append(piece.span)
                model += piece
            case 5..<9:
                let count = Int.random(in: 0...min(model.count, 12_000), using: &random)
                buffer.removeFirst(count)
                model.removeFirst(count)
            default:
                let count = Int.random(in: 0...model.count, using: &random)
                buffer.truncate(to: count)
                model.removeLast(model.count - count)
            }
            largest = max(largest, model.count)
            #expect(capacity(buffer) <= max(4096, 4 * largest + 18_000))
            guard contents(buffer) == model else {
                Issue.record("the bytes differ")
                return
            }
        }
    }
}

@Suite struct SpareMemoryTests {
    @Test func memoryOfAWrittenOutputServesTheNext() {
        var spare = SpareMemory()
        var first = StreamBuffer()
        first.append("reply")
        let memory = first.bytes.baseAddress
        spare.reclaim(&first)
        let isEmpty = first.capacity == 0 && first.isEmpty
        #expect(isEmpty)
        var second = StreamBuffer()
        spare.supply(&second)
        second.append("next")
        let isReused = second.bytes.baseAddress == memory
        #expect(isReused && Array(second.bytes) == Array("next".utf8))
        spare.supply(&first)
        let hasNone = first.capacity == 0
        #expect(hasNone, "there is no more")
    }

    @Test func longOutputsAreFreed() {
        var spare = SpareMemory()
        var buffer = StreamBuffer()
        buffer.append(pattern(100_000).span)
        spare.reclaim(&buffer)
        spare.supply(&buffer)
        let capacity = buffer.capacity
        #expect(capacity == 0)
    }
}
