import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import CRUDThreads
import Testing

@testable import CRUDStorage

/// Reads, by the backend's own threads and by event loops.
@Suite struct BackendReadingTests {
    @Test(arguments: [[], [.concurrentReads]] as [Plugin.Capabilities])
    func findsRecords(capabilities: Plugin.Capabilities) throws {
        let test = try TestBackend.opened(capabilities: capabilities)
        let (clients, others) = (collection("clients"), collection("others"))
        try test.write(.put("a", "1", "r1"), .put("b", "", "r2"), in: clients)
        #expect(try test.read(["b", "x", "a", "b"], in: clients) == .records(["@r2", nil, "1@r1", "@r2"]))
        #expect(try test.read([], in: clients) == .records([]))
        #expect(try test.read(["a", "x"], withItems: false, in: clients) == .records(["@r1", nil]))
        #expect(test.count(clients) == 2)
        #expect(test.count(others) == 0)
        #expect(try test.read(["a"], in: others) == .records([nil]))
        #expect(try test.read(["a"], in: collection("clients")) == .records(["1@r1"]), "another loop's object")
        #expect(test.plugin[.creations] == 1)
        #expect(test.plugin[.violations] == 0)
    }

    @Test func countsRecordsByPrefix() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a"), .put("aa"), .put("ab"), .put("b"), .put("ä"), in: clients)
        let inbox = try Inbox<WorkItem>()
        let batch = ReadBatch { inbox.put($0) }
        for prefix in ["", "a", "aa", "c", "ä"] {
            batch.append(Read(.count(prefix: batch.store(Array(prefix.utf8).span)), in: clients))
        }
        test.backend.submit(.read(.batch(batch)))
        _ = try inbox.take()
        #expect(try (0..<5).map { try FoundTexts(batch, at: $0) } == [5, 3, 1, 0, 1].map { .count($0) })
    }

    @Test func keepsNoMoreBytesThanAsked() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a", "12345", "r"), .put("b", "6", "r"), in: clients)
        #expect(try test.read(["a", "b"], maximumBytes: 8, in: clients) == .records(["12345@r", "6@r"]))
        #expect(try test.read(["a", "b"], maximumBytes: 7, in: clients) == .partial(["12345@r", nil], lacking: 1))
        #expect(try test.read(["a", "a"], maximumBytes: 11, in: clients) == .partial(["12345@r", nil], lacking: 1))
        #expect(try test.read(["a"], maximumBytes: 6, in: clients) == .records(["12345@r"]))
    }

    /// What a record takes more than there was room for comes from the reserve, as long as the batch is there; where
    /// that has not so much nothing is taken. It is read once in either case.
    @Test(arguments: [(100, 3), (3, 3), (2, nil), (0, nil)])
    func longRecordsTakeFromTheReserve(_ bytes: Int, _ taken: Int?) throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a", "12345", "r"), in: clients)
        let before = test.plugin[.reads]
        let budget = ByteBudget(bytes: bytes)
        do {
            let inbox = try Inbox<WorkItem>()
            let batch = ReadBatch { inbox.put($0) }
            let place = batch.store(Array("a".utf8).span)
            batch.append(
                Read(.records([place]), in: clients, maximumBytes: 3, reserve: Read.Reserve(budget, atMost: 50)))
            test.backend.submit(.read(.batch(batch)))
            _ = try inbox.take()
            #expect(try FoundTexts(batch) == (taken == nil ? .partial([nil], lacking: 3) : .records(["12345@r"])))
            #expect(batch.extraBytes(at: 0) == taken ?? 0)
            #expect(budget.left == bytes - (taken ?? 0))
        }
        // The thread that has read may hold it for a moment more.
        let deadline = Deadline()
        while budget.left != bytes { try #require(!deadline.hasPassed, "the reserve stays taken") }
        #expect(test.plugin[.reads] == before + 1)
    }

    @Test(
        arguments: [
            (CRUDD_UNAVAILABLE, .unavailable), (CRUDD_CORRUPT, .corrupt), (CRUDD_INTERNAL, .internalError),
            (CRUDD_NOT_FOUND, .internalError),
        ] as [(Int, CRUDError.Code)])
    func failureOfReadHasItsReason(status: Int, code: CRUDError.Code) throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a"), in: clients)
        #expect(try test.read(["a", "call:\(status)"], in: clients) == .failed(code))
        #expect(test.backend.status.lastError == "private reason \(status)")
        #expect(test.backend.status.state == .ready)
        let reader = try #require(test.backend.reader(forLoop: 1))
        #expect(throws: CRUDError.self) {
            try reader.read(Array("call:\(status)".utf8).span, in: clients, into: TextVisitor())
        }
        #expect(try test.read(["a"], in: clients) == .records(["1@r"]))
    }

    /// A plugin that was built against an older version emits shorter records, one against a newer version longer ones.
    @Test(arguments: ["short_records", "long_records"])
    func recordsOfOtherVersionsAreRead(option: String) throws {
        let test = try TestBackend.opened(options: #"{"\#(option)":1}"#)
        let clients = collection()
        try test.write(.put("a", "1", "r1"), in: clients)
        #expect(try test.read(["a"], in: clients) == .records(["1@r1"]))
        let reader = try #require(test.backend.reader(forLoop: 0))
        let visitor = TextVisitor()
        try reader.scan(RecordScan(idPrefix: []), of: clients, into: visitor)
        reader.releaseSnapshot()
        #expect(visitor.texts == ["1@r1"])
    }

    // MARK: Snapshots

    @Test func snapshotIsHeldUntilCommit() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a", "1", "r1"), in: clients)
        let reader = try #require(test.backend.reader(forLoop: 0))
        let visitor = TextVisitor()
        let id = Array("a".utf8)
        #expect(!reader.holdsSnapshot && !reader.isStale)
        for _ in 0..<3 { try reader.read(id.span, in: clients, into: visitor) }
        #expect(reader.holdsSnapshot && !reader.isStale)
        #expect(test.plugin[.snapshotsEnded] == 0)

        try test.write(.put("a", "2", "r2"), in: clients)
        #expect(reader.isStale)
        try reader.read(id.span, in: clients, into: visitor)
        #expect(!reader.isStale)
        #expect(test.plugin[.snapshotsEnded] == 1)
        #expect(visitor.texts == ["1@r1", "1@r1", "1@r1", "2@r2"])
        #expect(try reader.count(RecordScan(idPrefix: []), of: clients) == 1)

        reader.releaseSnapshot()
        reader.releaseSnapshot()
        #expect(!reader.holdsSnapshot)
        #expect(test.plugin[.snapshotsEnded] == 2, "a snapshot is released once")
        #expect(test.plugin[.violations] == 0)
    }

    /// While a write is in progress it may be visible already. Where several loops read, none holds a snapshot then, so
    /// that they agree; a single loop has nobody to disagree with.
    @Test(arguments: [1, 2])
    func noSnapshotIsHeldDuringWriteThatOthersMaySee(loops: Int) throws {
        let test = try TestBackend.opened(options: #"{"gated":1}"#, loops: loops)
        let clients = collection()
        test.plugin.pass()
        try test.write(.put("a", "1"), in: clients)
        try test.plugin.wait(for: .writeBegan)
        let reader = try #require(test.backend.reader(forLoop: 0))
        let visitor = TextVisitor()
        let id = Array("a".utf8)
        try reader.read(id.span, in: clients, into: visitor)

        let inbox = try Inbox<WorkItem>()
        _ = test.submit([.put("a", "2")], in: clients, to: inbox)
        try test.plugin.wait(for: .writeBegan)
        for _ in 0..<3 { try reader.read(id.span, in: clients, into: visitor) }
        #expect(test.plugin[.snapshotsEnded] == (loops == 1 ? 0 : 3))
        test.plugin.pass()
        _ = try inbox.take()
        try reader.read(id.span, in: clients, into: visitor)
        reader.releaseSnapshot()
        #expect(visitor.texts == ["1@r", "1@r", "1@r", "1@r", "2@r"])
    }

    @Test func pluginIsNotAskedForMissingCollection() throws {
        let test = try TestBackend.opened()
        let reader = try #require(test.backend.reader(forLoop: 0))
        let visitor = TextVisitor()
        try reader.read(Array("a".utf8).span, in: collection(), into: visitor)
        try reader.scan(RecordScan(idPrefix: []), of: collection(), into: visitor)
        #expect(try reader.count(RecordScan(idPrefix: []), of: collection()) == 0)
        #expect(visitor.texts.isEmpty && !reader.holdsSnapshot)
        #expect(test.plugin[.reads] == 0 && test.plugin[.scans] == 0 && test.plugin[.counts] == 0)
    }

    @Test func readingThreadsReleaseTheirSnapshots() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a", "1"), in: clients)
        #expect(try test.read(["a"], in: clients) == .records(["1@r"]))
        try test.write(.put("a", "2"), in: clients)
        #expect(try test.read(["a"], in: clients) == .records(["2@r"]))
        test.backend.stop()
        #expect(test.plugin[.snapshotsEnded] == 2)
    }

    // MARK: Scans

    @Test func scanResumesBehindARecord() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a", "1"), .put("b", "2"), .put("c", "3"), .put("d", "4"), in: clients)
        let reader = try #require(test.backend.reader(forLoop: 0))
        defer { reader.releaseSnapshot() }
        func items(_ change: (inout RecordScan) -> Void) throws -> [String] {
            var scan = RecordScan(.id)
            change(&scan)
            let visitor = TextVisitor()
            try reader.scan(scan, of: clients, into: visitor)
            return visitor.texts.map { String($0.prefix { $0 != "@" }) }
        }
        #expect(try items { _ in } == ["1", "2", "3", "4"])
        #expect(try items { $0.limit = 2 } == ["1", "2"])
        #expect(try items { $0.after = ([], Array("b".utf8)) } == ["3", "4"])
        #expect(try items { $0.isReversed = true } == ["4", "3", "2", "1"])
        #expect(
            try items {
                $0.isReversed = true
                $0.after = ([], Array("c".utf8))
            } == ["2", "1"])
        #expect(
            try items {
                $0.lower = Array("b".utf8)
                $0.upper = Array("d".utf8)
            } == ["2", "3"])
        #expect(try items { $0.withItems = false } == ["", "", "", ""])
        #expect(test.plugin[.violations] == 0)
    }

    // MARK: At the same time

    @Test func readsDoNotWaitForWriteWithConcurrentReads() throws {
        let test = try TestBackend.opened(capabilities: [.concurrentReads], options: #"{"gated":1}"#)
        #expect(test.backend.loopReaderCount == 0)
        let clients = collection()
        let inbox = try Inbox<WorkItem>()
        _ = test.submit([.put("a", "1")], in: clients, to: inbox)
        test.plugin.pass()
        _ = try inbox.take()
        try test.plugin.wait(for: .writeBegan)
        _ = test.submit([.put("a", "2")], in: clients, to: inbox)
        try test.plugin.wait(for: .writeBegan)
        #expect(try test.read(["a"], in: clients) == .records(["1@r"]))
        #expect(inbox.count == 0)
        test.plugin.pass()
        _ = try inbox.take()
        #expect(try test.read(["a"], in: clients) == .records(["2@r"]))
    }

    /// The plugin itself counts calls that overlap though it does not allow that.
    @Test(arguments: [[], [.concurrentReads]] as [Plugin.Capabilities])
    func pluginIsCalledAsItAllows(capabilities: Plugin.Capabilities) throws {
        let test = try TestBackend.opened(capabilities: capabilities)
        let clients = collection()
        let threads = try (0..<4).map { number in
            try Thread(named: "submit") {
                for round in 0..<50 {
                    _ = try? test.write(.put("\(number)-\(round)"), in: clients)
                    _ = try? test.read(["\(number)-\(round)"], in: clients)
                    _ = test.count(clients)
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(test.count(clients) == 200)
        test.backend.stop()
        #expect(test.plugin[.violations] == 0)
        #expect(test.plugin[.mutations] == 200)
    }
}
