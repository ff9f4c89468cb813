import CRUDPluginABI
import CRUDTestSupport
import Testing

@testable import CRUDPluginHost

/// Records, ranges, mutations and outcomes on their way through a frame.
@Suite struct CodecTests {
    private let raw = RawBytes()

    private func record(
        _ id: String, _ item: String, _ revision: String = "r", expiresAt: Int64 = 0, sequence: UInt64 = 0
    ) -> crudd_record {
        var record = crudd_record.sized()
        record.id = raw(id)
        record.item = raw(item)
        record.revision = raw(revision)
        record.expires_at = expiresAt
        record.sequence = sequence
        return record
    }

    private func text(_ record: crudd_record) -> String {
        "\(record.id.text)=\(record.item.text)@\(record.revision.text) \(record.expires_at) \(record.sequence)"
    }

    @Test func recordsComeBack() throws {
        let records = [
            record("a", "{}"), record("😀", "", "r2", expiresAt: .max, sequence: .max), record("c", "\0\"", sequence: 1),
        ]
        let bytes = writtenFrame { writer in
            writer.raw(#"{"records":["#)
            for (index, record) in records.enumerated() {
                if index > 0 { writer.raw(",") }
                writer.record(record, withItem: true)
            }
            writer.raw(",")
            writer.record(records[0], at: 7, withItem: false)
            writer.raw("]}")
        }
        var read: [String] = []
        try readFrame(bytes) { reader throws(ProtocolViolation) in
            try reader.records { (index, record) throws(ProtocolViolation) in
                read.append("\(index ?? -1) \(text(record))")
            }
        }
        #expect(read == records.map { "-1 \(text($0))" } + ["7 =@r 0 0"])
    }

    /// Nothing but its id and its sequence number.
    @Test func removalsComeBack() throws {
        var removal = record("ab", "{}", expiresAt: 5, sequence: 9)
        removal.flags = UInt32(CRUDD_RECORD_REMOVED)
        let bytes = writtenFrame { writer in
            writer.raw(#"{"records":["#)
            writer.record(removal, withItem: true)
            writer.raw(#"],"nextExpiry":7}"#)
        }
        var read: [String] = []
        try readFrame(bytes) { reader throws(ProtocolViolation) in
            try reader.records { (_, record) throws(ProtocolViolation) in
                read.append("\(text(record)) \(record.isRemoved)")
            } member: { (reader, key) throws(ProtocolViolation) in
                read.append("\(key.text) \(try reader.count())")
            }
        }
        #expect(read == ["ab=@ 0 9 true", "nextExpiry 7"])
    }

    @Test(arguments: [
        #"{"records":[{}]}"#, #"{"records":[{"index":0,"revision":0}]}"#, #"{"records":[{"index":0,"revision":65}]}"#,
        #"{"records":[{"index":0,"item":1,"revision":200}]}"#, #"{"records":[{"index":2,"revision":1}]}"#,
        #"{"records":[{"revision":1}]}"#, #"{"records":[{"index":-1,"revision":1}]}"#, #"{"records":{}}"#,
        #"{"records":[{"index":0,"revision":1,"expiresAt":9223372036854775808}]}"#,
        #"{"records":[{"index":0,"revision":1,"sequence":18446744073709551616}]}"#,
        #"{"records":[{"index":0,"removed":true,"sequence":1}]}"#,
    ])
    func wrongRecordsAreViolations(head: String) {
        #expect(throws: ProtocolViolation.self) {
            try readFrame(frame(head, String(repeating: "r", count: 100))) { reader throws(ProtocolViolation) in
                _ = try reader.recordsRead(of: 2) { _, _ in true }
                reader.skipPayload()
            }
        }
    }

    @Test(arguments: ["", "\u{1F}", "\u{7F}", "é", String(repeating: "r", count: 65)])
    func whatIsNotARevision(text: String) {
        #expect(!Array(text.utf8).withUnsafeBytes { RecordCodec.isRevision($0) })
    }

    /// The bytes of ids come from a child, which may send anything.
    @Test(
        arguments: [
            ([], false), ([0x41], true), ([0x1F], false), ([0x7F], false), ([0xC3, 0xA9], true), ([0xC3], false),
            ([0xFF], false), ([0x80], false), ([0xED, 0xA0, 0x80], false), (Array(repeating: 0x41, count: 512), true),
            (Array(repeating: 0x41, count: 513), false),
        ] as [([UInt8], Bool)])
    func idsAreUTF8(bytes: [UInt8], isID: Bool) {
        #expect(bytes.withUnsafeBytes { RecordCodec.isID($0) } == isID)
    }

    @Test func nobodyIsAskedForMoreRecordsThanAreWanted() throws {
        let head = #"{"records":[{"index":0,"revision":1},{"index":1,"revision":1}]}"#
        var taken: [Int] = []
        let isWanted = try readFrame(frame(head, "rr")) { reader throws(ProtocolViolation) in
            try reader.recordsRead(of: 2) { index, _ in
                taken.append(index)
                return false
            }
        }
        #expect(taken == [0] && !isWanted)
    }

    // MARK: Ranges

    private func range(_ order: Int, lower: String = "", upper: String = "", flags: Int = 0) -> crudd_range {
        var range = crudd_range.sized()
        range.order = UInt32(order)
        range.flags = UInt32(flags)
        range.lower = raw(lower)
        range.upper = raw(upper)
        return range
    }

    private func text(_ range: crudd_range) -> String {
        "\(range.order) \(range.flags) \(range.index) \(range.lower.text) \(range.upper.text) "
            + "\(range.lower_sequence) \(range.upper_sequence)"
    }

    @Test func rangesComeBack() throws {
        var byKey = range(CRUDD_BY_KEY, lower: "\0", upper: "\u{1}é")
        byKey.index = 3
        var bySequence = range(CRUDD_BY_SEQUENCE)
        bySequence.lower_sequence = 1
        bySequence.upper_sequence = .max
        let unkeyed = range(CRUDD_BY_KEY, flags: CRUDD_RANGE_UNKEYED)
        let unsequenced = range(CRUDD_BY_SEQUENCE, lower: "a", upper: "b", flags: CRUDD_RANGE_UNSEQUENCED)
        let byID = [range(CRUDD_BY_ID), range(CRUDD_BY_ID, lower: "a", upper: "b")]
        for range in byID + [byKey, unkeyed, bySequence, unsequenced] {
            let bytes = writtenFrame { writer in
                writer.raw(#"{"collection":1"#)
                writer.range(range)
                writer.raw("}")
            }
            var read = crudd_range.sized()
            try readFrame(bytes) { reader throws(ProtocolViolation) in
                try reader.object { (reader, key) throws(ProtocolViolation) in
                    try reader.member(key, of: &read)
                }
            }
            #expect(text(read) == text(range))
        }
    }

    // MARK: Mutations

    private func mutation(_ kind: Int, _ precondition: Int, keys: [String] = []) -> crudd_mutation {
        var mutation = crudd_mutation.sized()
        mutation.kind = UInt32(kind)
        mutation.precondition = UInt32(precondition)
        if precondition == CRUDD_IF_REVISION { mutation.expected = raw("r0") }
        var record = record("é", kind == CRUDD_PUT ? "{}" : "", kind == CRUDD_PUT ? "r1" : "")
        if kind == CRUDD_PUT || kind == CRUDD_REMOVE { record.sequence = 1 << 60 }
        if kind == CRUDD_PUT { record.expires_at = 12 }
        record.keys = raw.array(keys)
        record.key_count = keys.count
        mutation.record = raw.copy(record)
        return mutation
    }

    private func text(_ mutation: crudd_mutation, _ record: crudd_record, keys: [String]) -> String {
        "\(mutation.kind) \(mutation.precondition) \(mutation.expected.text) \(text(record)) \(keys)"
    }

    @Test func mutationsComeBack() throws {
        let keys = ["\u{5}a", "", "\u{1}"]
        let mutations = [
            (mutation(CRUDD_PUT, CRUDD_IF_ANY), []), (mutation(CRUDD_PUT, CRUDD_IF_ABSENT, keys: keys), keys),
            (mutation(CRUDD_REMOVE, CRUDD_IF_PRESENT), []), (mutation(CRUDD_CHECK, CRUDD_IF_REVISION), []),
            (mutation(CRUDD_SET_KEYS, CRUDD_IF_REVISION, keys: keys), keys),
        ]
        let bytes = writtenFrame { writer in
            writer.raw("[")
            for (index, mutation) in mutations.enumerated() {
                if index > 0 { writer.raw(",") }
                writer.mutation(mutation.0, collection: index)
            }
            writer.raw("]")
        }
        var read: [MutationInFrame] = []
        var readKeys: [crudd_bytes] = []
        try readFrame(bytes) { reader throws(ProtocolViolation) in
            try reader.array { (reader) throws(ProtocolViolation) in
                read.append(try reader.mutation(keys: &readKeys))
            }
            // The bytes stay as long as the frame.
            for (index, (mutation, keys)) in mutations.enumerated() {
                #expect(read[index].collection == index)
                #expect(
                    text(read[index].mutation, read[index].record, keys: readKeys[read[index].keys].map(\.text))
                        == text(mutation, mutation.record.pointee, keys: keys))
            }
        }
        #expect(read.count == mutations.count)
    }

    @Test(arguments: [CRUDD_OK, CRUDD_EXISTS, CRUDD_MISMATCH, CRUDD_OUTCOME_UNKNOWN, CRUDD_INTERRUPTED])
    func outcomesComeBack(status: Int) throws {
        var outcome = crudd_outcome.sized()
        outcome.status = crudd_status(status)
        outcome.replaced = status == CRUDD_OK ? 1 : 0
        if status == CRUDD_MISMATCH {
            outcome.revision_size = 3
            withUnsafeMutableBytes(of: &outcome.revision) { $0.copyBytes(from: Array("r-1".utf8)) }
        }
        let read = try readFrame(writtenFrame { $0.outcome(outcome) }) { reader throws(ProtocolViolation) in
            try reader.outcome()
        }
        #expect(read.status == outcome.status && read.replaced == outcome.replaced)
        #expect(read.revision_size == outcome.revision_size)
        #expect(withUnsafeBytes(of: read.revision) { $0[2] } == (status == CRUDD_MISMATCH ? UInt8(ascii: "1") : 0))
    }

    @Test(arguments: ["{}", #"{"status":"okay"}"#, #"{"status":"mismatch"}"#, #"{"status":"mismatch","revision":0}"#])
    func wrongOutcomesAreViolations(head: String) {
        #expect(throws: ProtocolViolation.self) {
            try readFrame(frame(head)) { reader throws(ProtocolViolation) in try reader.outcome() }
        }
    }

    @Test func statusesHaveNames() {
        for status in 0...11 {
            let name = "\(StatusName.name(of: status))"
            #expect(StatusName.status { "\($0)" == name } == status)
        }
        #expect("\(StatusName.name(of: 99))" == "internal")
        #expect(StatusName.status { "\($0)" == "okay" } == nil)
    }

    @Test func capabilitiesHaveNames() {
        let names = [
            "concurrentReads", "fastReads", "transactions", "durable", "indexes", "sequences", "expiry", "takesHistory",
            "shared",
        ]
        #expect(Plugin.Capabilities.known.names == names)
        for name in names {
            #expect(Plugin.Capabilities.capability { "\($0)" == name }.names == [name])
        }
    }

    // MARK: Anything

    /// Whatever a child sends is read or is a violation: every byte of a reply changed, and every beginning of one.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func nothingElseComesOfBrokenFrames(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let good = writtenFrame { writer in
            writer.raw(#"{"id":7,"result":{"records":["#)
            writer.record(record("ab", "{\"a\":1}", sequence: 9), at: 0, withItem: true)
            writer.raw(#"],"outcomes":["#)
            var outcome = crudd_outcome.sized()
            outcome.status = crudd_status(CRUDD_MISMATCH)
            outcome.revision_size = 1
            outcome.revision.0 = 0x72
            writer.outcome(outcome)
            writer.raw("]}}")
        }
        var results = (read: 0, violations: 0)
        for index in good.indices {
            for _ in 0..<40 {
                var bytes = good
                bytes[index] = UInt8.random(in: 0...255, using: &generator)
                if Bool.random(using: &generator) {
                    bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
                }
                if Bool.random(using: &generator) { bytes.append(UInt8.random(in: 0...255, using: &generator)) }
                do throws(ProtocolViolation) {
                    try readReply(bytes)
                    results.read += 1
                } catch {
                    results.violations += 1
                }
            }
        }
        #expect(results.read > 0 && results.violations > results.read, "\(results)")
    }

    private func readReply(_ bytes: [UInt8]) throws(ProtocolViolation) {
        guard bytes.count >= FrameWriter.lengthBytes else { throw ProtocolViolation("no length") }
        var reader = FrameReader()
        try bytes.span.withUnsafeBytes { bytes throws(ProtocolViolation) in
            try reader.begin(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(FrameWriter.lengthBytes)))
            _ = try reader.message(replyTo: 7) { reader throws(ProtocolViolation) in
                try reader.object { (reader, key) throws(ProtocolViolation) in
                    switch key {
                    case "outcomes":
                        try reader.array { (reader) throws(ProtocolViolation) in _ = try reader.outcome() }
                    case "records":
                        try reader.array { (reader) throws(ProtocolViolation) in
                            try reader.object { (reader, key) throws(ProtocolViolation) in
                                switch key {
                                case "index", "sequence": _ = try reader.integer()
                                default: _ = try reader.bytes()
                                }
                            }
                        }
                    default: try reader.skip()
                    }
                }
                return true
            }
        }
    }
}
