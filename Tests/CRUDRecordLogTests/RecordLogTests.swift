import CLinux
import CRUDPluginKit
import CRUDRecordLog
import CRUDTestSupport
import Glibc
import Testing

@Suite struct RecordLogTests {
    /// A log, and what must be in it.
    private struct Model {
        let files: MemoryFiles
        var log: RecordLog
        /// What is needed, in the order of the log.
        var entries: [(payload: [UInt8], segment: UInt64)] = []
        /// What was replayed, which may begin with what is not needed.
        private(set) var replayed: [(payload: [UInt8], segment: UInt64)] = []
        var sequence: UInt64 = 0

        init(_ files: MemoryFiles) throws {
            self.files = files
            var replayed: [(payload: [UInt8], segment: UInt64)] = []
            log = try RecordLog.open(files, host: .silent) { (payload, segment) throws(StorageFailure) in
                replayed.append((Array(payload), segment))
            }
            self.replayed = replayed
        }

        /// Commits something, after which the first entries are not needed any more.
        mutating func commit(
            _ payload: [UInt8], forgetting count: Int = 0, _ purpose: RecordLog.Purpose = .grows
        ) throws(StorageFailure) {
            let frame = LogFrame()
            payload.withUnsafeBytes { frame.append($0) }
            let needed = Array(entries.dropFirst(count))
            sequence += 1
            let segment = try log.commit(
                frame, purpose, lastSequence: sequence, oldestSegment: needed.first?.segment)
            entries = needed + [(payload, segment)]
            log.liveBytes = entries.reduce(0) { $0 + $1.payload.count }
        }

        /// Whether what was replayed ends with these payloads.
        func ends(with payloads: [[UInt8]]) -> Bool { replayed.suffix(payloads.count).map(\.payload) == payloads }

        mutating func adopt(_ count: Int, sequence: UInt64) {
            entries = Array(replayed.suffix(count))
            self.sequence = sequence
            log.liveBytes = entries.reduce(0) { $0 + $1.payload.count }
        }
    }

    private static func payload(_ random: inout SeededGenerator) -> [UInt8] {
        let size = Int.random(in: 0..<20, using: &random) == 0 ? 300_000 : Int.random(in: 0..<3000, using: &random)
        let byte = UInt8.random(in: 0...255, using: &random)
        return (0..<size).map { byte &+ UInt8(truncatingIfNeeded: $0) }
    }

    /// The check value of CRC-32C, as a whole and in two parts: a log that is read by another processor is the same.
    @Test func checksumsAreThoseOfTheStandard() {
        let digits = Array("123456789".utf8)
        #expect(clinux_crc32c(0, digits, 9) == 0xE306_9283)
        #expect(clinux_crc32c(clinux_crc32c(0, digits, 4), Array(digits[4...]), 5) == 0xE306_9283)
    }

    @Test func isTheSameLogWhenItIsOpenedAgain() throws {
        let files = MemoryFiles(seed: 1)
        var model = try Model(files)
        try model.commit([1, 2, 3])
        let again = try Model(files.crashed(isLucky: true, seed: 2))
        #expect(again.ends(with: [[1, 2, 3]]))
        #expect(again.log.identity == model.log.identity)
        #expect(again.log.identity != 0)
    }

    /// Whatever call the machine crashes in, what was committed is there, and what was being committed is there whole
    /// or not at all.
    @Test(arguments: 0..<60 as Range<UInt64>) func survivesCrashes(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var files = MemoryFiles(seed: seed)
        var entries: [[UInt8]] = []
        var landed: [[UInt8]]?
        var sequence: UInt64 = 0
        for round in 0..<6 {
            files.fault = .init(calls: { $0...$0 }(Int.random(in: 1...120, using: &random)), kills: true)
            if let opened = try? Model(files) {
                var model = opened
                let isLanded = landed.map { model.ends(with: $0) } ?? false
                let expected = isLanded ? landed ?? [] : entries
                try #require(model.ends(with: expected), "seed \(seed), round \(round)")
                #expect(model.log.lastSequence >= sequence)
                model.adopt(expected.count, sequence: sequence + 1)
                (entries, landed) = (expected, nil)
                while true {
                    let payload = Self.payload(&random)
                    let forgotten = Int.random(in: 0...2, using: &random)
                    do throws(StorageFailure) {
                        try model.commit(payload, forgetting: min(forgotten, model.entries.count))
                        entries = model.entries.map(\.payload)
                        sequence = model.sequence
                    } catch {
                        try #require(files.isKilled, "\(error)")
                        landed = Array(entries.dropFirst(forgotten)) + [payload]
                        break
                    }
                }
            } else {
                try #require(files.isKilled)
            }
            files = files.crashed(seed: seed &* 31 &+ UInt64(round))
        }
    }

    /// One call after the other fails, and some after it: what is acknowledged is there after a crash, what is refused
    /// is not, and it continues.
    @Test(arguments: 1...3) func failuresAreCertain(length: Int) throws {
        for first in 1..<90 {
            let files = MemoryFiles(seed: UInt64(first))
            files.fault = .init(calls: first...first + length - 1, code: first.isMultiple(of: 2) ? EIO : ENOSPC)
            var random = SeededGenerator(seed: UInt64(first))
            var opened = try? Model(files)
            for _ in 0..<4 where opened == nil { opened = try? Model(files) }
            var model = try opened ?? Model(files)
            var unknown: [[UInt8]] = []
            var acknowledged: [[UInt8]] = []
            for number in 0..<30 {
                let payload = [UInt8(number)] + Self.payload(&random)
                do throws(StorageFailure) {
                    try model.commit(payload)
                    acknowledged.append(payload)
                    unknown = []
                } catch {
                    #expect([.unavailable, .noSpace, .outcomeUnknown].contains(error.status), "\(error)")
                    if error.status == .outcomeUnknown { unknown.append(payload) }
                }
            }
            try #require(acknowledged.count >= 30 - length - 2, "call \(first)")
            files.fault = nil
            try model.commit([255])
            acknowledged.append([255])
            for isLucky in [true, false] {
                let again = try Model(files.crashed(isLucky: isLucky, seed: 7))
                try #require(again.ends(with: acknowledged), "call \(first)")
                #expect(again.log.lastSequence >= model.log.lastSequence)
            }
        }
    }

    /// An outcome is unknown only until the log can be written again.
    @Test func refusesCommitsWhileTheOutcomeOfOneIsUnknown() throws {
        let files = MemoryFiles(seed: 3)
        var model = try Model(files)
        try model.commit([1])
        files.fault = .init(calls: files.calls + 1...files.calls + 1000)
        #expect(throws: StorageFailure.self) { try model.commit([2]) }
        do throws(StorageFailure) {
            try model.commit([3])
            Issue.record("it was committed")
        } catch {
            #expect(error.status == .unavailable)
        }
        files.fault = nil
        try model.log.resolve()
        #expect(try Model(files.crashed(isLucky: true, seed: 4)).ends(with: [[1]]))
        try model.commit([4])
        #expect(try Model(files.crashed(isLucky: false, seed: 4)).ends(with: [[1], [4]]))
    }

    // MARK: Two faults in a row

    /// Twice the machine crashes as the first commit of a segment is written, the second time because that did not fit
    /// into the segment which the first time had left behind.
    @Test func aSegmentMayHaveNoCommit() throws {
        for (first, second) in (1...8).flatMap({ first in (1...8).map { (first, $0) } }) {
            let files = MemoryFiles(seed: 16)
            var model = try Model(files)
            try model.commit([UInt8](repeating: 1, count: 900_000))
            files.fault = .init(calls: { $0...$0 }(files.calls + first), kills: true)
            _ = try? model.commit([UInt8](repeating: 2, count: 300_000))
            let crashed = files.crashed(isLucky: true, seed: 17)
            var again = try Model(crashed)
            let count = again.replayed.count
            again.adopt(count, sequence: 5)
            crashed.fault = .init(calls: { $0...$0 }(crashed.calls + second), kills: true)
            let isDone = (try? again.commit([UInt8](repeating: 3, count: 1_500_000))) != nil
            let last = try Model(crashed.crashed(isLucky: true, seed: 18))
            #expect(last.replayed.count >= count + (isDone ? 1 : 0), "calls \(first) and \(second)")
        }
    }

    /// A file that a killed process has left is only used once the disk has its name.
    @Test func filesOfAKilledProcessOutliveACrash() throws {
        for call in 1...30 {
            let files = MemoryFiles(seed: 19)
            var model = try Model(files)
            files.fault = .init(calls: { $0...$0 }(files.calls + call), kills: true)
            var acknowledged = 0
            while (try? model.commit([UInt8](repeating: 1, count: 200_000))) != nil { acknowledged += 1 }
            files.restart()
            var again = try Model(files)
            let found = again.replayed.count
            #expect(found >= acknowledged)
            again.adopt(found, sequence: 99)
            for count in 1...12 {
                try again.commit([UInt8](repeating: 2, count: 200_000))
                let last = try Model(files.crashed(isLucky: false, seed: 20))
                try #require(last.replayed.count >= found + count, "call \(call)")
            }
        }
    }

    // MARK: Damage

    private static func segments(_ files: MemoryFiles) throws -> [String] {
        try files.names().filter { files.bytes(of: $0).prefix(8).elementsEqual("CRUDDLOG".utf8) }.sorted()
    }

    /// Wherever the last frame is cut off, or damaged, it is as if it had never been written.
    @Test func aTornFrameIsTheEnd() throws {
        let files = MemoryFiles(seed: 5)
        var model = try Model(files)
        for number in 0..<3 { try model.commit([UInt8](repeating: UInt8(number + 1), count: 100)) }
        let name = try #require(try Self.segments(files).first)
        let before = files.bytes(of: name)
        try model.commit([UInt8](repeating: 9, count: 100))
        let after = files.bytes(of: name)
        let changed = zip(before, after).enumerated().filter { $0.element.0 != $0.element.1 }.map(\.offset)
        let range = try #require(changed.first)...(try #require(changed.last))
        for end in range {
            let copy = files.crashed(isLucky: true, seed: 6)
            copy.edit(name) { $0.replaceSubrange(end..., with: before[end...]) }
            var again = try Model(copy)
            try #require(again.ends(with: (1...3).map { [UInt8](repeating: $0, count: 100) }), "\(end)")
            // What comes then is not taken for damage of what was cut off.
            again.adopt(3, sequence: 9)
            for _ in 0..<3 { try again.commit([7]) }
            #expect(try Model(copy.crashed(isLucky: false, seed: 8)).ends(with: [[7], [7], [7]]))
        }
    }

    /// Any bit that changes before the last frame is noticed, and told with file and offset.
    @Test func damageIsRefused() throws {
        let files = MemoryFiles(seed: 9)
        var model = try Model(files)
        for number in 0..<3 { try model.commit([UInt8](repeating: UInt8(number + 1), count: 50)) }
        let name = try #require(try Self.segments(files).first)
        for offset in 4096..<4096 + 2 * (32 + 56) {
            let copy = files.crashed(isLucky: true, seed: 10)
            copy.edit(name) { $0[offset] ^= UInt8(1 << (offset % 8)) }
            do {
                _ = try Model(copy)
                // Zeros that fill a frame up are part of it; nothing else is left out.
                Issue.record("\(offset) was not noticed")
            } catch let error as StorageFailure {
                #expect(error.status == .corrupt)
                #expect(error.message.contains("/log/\(name) is damaged at offset \(offset < 4184 ? 4096 : 4184)"))
                #expect(error.message.contains("restore"))
            }
        }
        for offset in 0..<48 {
            let copy = files.crashed(isLucky: true, seed: 10)
            copy.edit(name) { $0[offset] ^= 4 }
            #expect(throws: StorageFailure.self, "\(offset)") { try Model(copy) }
        }
    }

    @Test func aLostSegmentIsRefused() throws {
        let files = MemoryFiles(seed: 11)
        var model = try Model(files)
        while model.log.currentSegment < 5 { try model.commit([UInt8](repeating: 1, count: 100_000)) }
        for name in try Self.segments(files) {
            let copy = files.crashed(isLucky: true, seed: 12)
            try copy.remove(name)
            do {
                // The last one is not missed: it is as if what it has had not been written.
                let again = try Model(copy)
                #expect(again.log.currentSegment == 4)
            } catch let error as StorageFailure {
                #expect(error.status == .corrupt)
            }
            let damaged = files.crashed(isLucky: true, seed: 12)
            damaged.edit(name) { $0[20] ^= 1 }
            #expect(throws: StorageFailure.self) { try Model(damaged) }
        }
    }

    @Test func anotherVersionIsRefusedByName() throws {
        let files = MemoryFiles(seed: 13)
        _ = try Model(files)
        for name in try Self.segments(files) { files.edit(name) { $0[8] = 2 } }
        do {
            _ = try Model(files)
            Issue.record("it was read")
        } catch let error as StorageFailure {
            #expect(error.status == .unsupported)
            #expect(error.message.contains("version 2"))
        }
    }

    // MARK: Room

    @Test func filesAreUsedAgain() throws {
        let files = MemoryFiles(seed: 14)
        var model = try Model(files)
        var names: Set<String> = []
        for _ in 0..<400 {
            try model.commit([UInt8](repeating: 1, count: 50_000), forgetting: max(0, model.entries.count - 3))
            names.formUnion(try files.names())
        }
        #expect(model.log.currentSegment > 15)
        #expect(names.count <= 5, "\(names)")
        #expect(files.totalBytes <= 5 << 20)
    }

    /// What removes has room when nothing else has.
    @Test func aFullDiskTakesWhatFreesRoom() throws {
        let files = MemoryFiles(seed: 15)
        files.space = 6 << 20
        var model = try Model(files)
        var refusals = 0
        while refusals == 0 {
            do throws(StorageFailure) {
                try model.commit([UInt8](repeating: 1, count: 20_000))
            } catch {
                #expect(error.status == .noSpace)
                refusals += 1
            }
        }
        #expect(model.entries.count > 100)
        for _ in 0..<500 { try model.commit([UInt8](repeating: 2, count: 50), .frees) }
        // The oldest segment is not needed any more.
        try model.commit([3], forgetting: 60, .frees)
        try model.commit([UInt8](repeating: 1, count: 20_000))
    }
}
