import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import Testing

/// The plugin `memory` with the option `log`.
@Suite struct LogTests {
    private let images: LogImages

    init() throws {
        images = try LogImages()
    }

    private func errorOfOpening(_ path: String? = nil, expected: UInt64 = 0) -> CallError? {
        do {
            _ = try images.open(path, expected: expected)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Options

    @Test func isDurableWithALogAlone() throws {
        let plugin = images.plugin
        let without = try #require(plugin.capabilities(withOptions: "{}"))
        let with = try #require(plugin.capabilities(withOptions: #"{"log": "/a"}"#))
        #expect(without & UInt64(CRUDD_IS_DURABLE) == 0)
        #expect(with == without | UInt64(CRUDD_IS_DURABLE))
        #expect(try images.open().capabilities == with)
        #expect(try PluginBackend(plugin, options: "{}").capabilities == without)
    }

    @Test(arguments: [
        #"{"log": "log"}"#, #"{"log": ""}"#, #"{"log": 1}"#, #"{"log": "/a\u0000b"}"#, #"{"log": true}"#,
    ])
    func pointsToErrors(options: String) throws {
        let error = try #require(images.plugin.error(inOptions: options))
        #expect(error.status == CRUDD_INVALID_OPTIONS)
        #expect(error.pointer == "/log")
        #expect(error.message.contains("log"))
    }

    // MARK: Places

    @Test func makesFilesForItsOwnerAlone() throws {
        let backend = try images.open()
        _ = try backend.write([.put("id", "1", in: backend.open("clients"))])
        #expect(Files.status(images.path)?.st_mode == S_IFDIR | 0o700)
        for name in try Files.names(in: images.path) {
            #expect(Files.status("\(images.path)/\(name)")?.st_mode == S_IFREG | 0o600)
        }
    }

    @Test func keepsASecondOpenerOut() throws {
        let backend = try images.open()
        let error = try #require(errorOfOpening())
        #expect(error.status == CRUDD_UNAVAILABLE)
        #expect(error.message.contains(".lock"))
        withExtendedLifetime(backend) {}
    }

    @Test func refusesWhatIsNoDirectory() throws {
        try Files.write("", to: images.path)
        #expect(errorOfOpening()?.status == CRUDD_INVALID_OPTIONS)
        #expect(errorOfOpening("\(images.parent.path)/none/log")?.status == CRUDD_INVALID_OPTIONS)
    }

    @Test func makesNothingWhereAStorageIsExpected() throws {
        let identity = try images.open().identity
        #expect(identity != 0)
        #expect(errorOfOpening(expected: identity) == nil)
        #expect(errorOfOpening(expected: identity + 1)?.status == CRUDD_NOT_FOUND)
        let other = "\(images.parent.path)/other"
        #expect(errorOfOpening(other, expected: identity)?.status == CRUDD_NOT_FOUND)
        #expect(!Files.exists(other))
        try Files.makeDirectory(other)
        #expect(errorOfOpening(other, expected: identity)?.status == CRUDD_NOT_FOUND)
        #expect(try Files.names(in: other).filter { $0 != ".lock" } == [])
        #expect(errorOfOpening(try images.copy(), expected: identity) == nil)
    }

    // MARK: What outlives the process

    @Test func keepsEverythingThatACollectionHas() throws {
        let history: PluginHistory
        let lastSequence: UInt64
        do {
            let backend = try images.open()
            backend.call.now = 1
            let collection = try backend.open("clients", indexes: ["name", "age"], hasSequences: true)
            _ = try backend.open("empty")
            let dropped = try backend.open("dropped")
            _ = try backend.write([
                .put(PluginRecord("a", "1"), keys: [[1], [2]], in: collection),
                .put(PluginRecord("b", bytes: [50], expiresAt: 10), keys: [[2]], in: collection),
                .put(PluginRecord("c", "3"), in: collection), .put("d", "4", in: collection),
                .put("e", "5", in: collection), .put("x", "1", in: dropped),
            ])
            _ = try backend.write([.remove("d", in: collection)])
            backend.call.now = 6
            _ = try backend.write([
                .remove("e", in: collection), .setKeys("c", [[9], [8]], ifRevision: "1", in: collection),
            ])
            backend.call.now = 11
            #expect(try backend.removeExpired(from: collection, limit: 10).removed.map(\.id) == ["b"])
            try backend.drop("dropped")
            #expect(try backend.history(of: collection, trimming: 1, before: 5).trimmed == 1)
            history = try backend.history(of: collection)
            lastSequence = backend.highestSequence
        }
        for path in [images.path, try images.copy()] {
            let backend = try images.open(path)
            #expect(try backend.collections() == ["clients", "empty"])
            #expect(backend.storedLastSequence >= lastSequence)
            // The position of an index may change, and its keys do not.
            let collection = try backend.open("clients", indexes: ["age", "name"], hasSequences: true)
            #expect(try backend.history(of: collection) == history)
            let reader = try backend.reader()
            #expect(try reader.scan(collection) == [PluginRecord("a", "1"), PluginRecord("c", "3")])
            #expect(try reader.scan(collection, PluginRange(.key(index: 0))).map(\.id) == ["a", "c"])
            #expect(try reader.scan(collection, PluginRange(.key(index: 1)), isReversed: true).map(\.id) == ["c", "a"])
            let changes = try reader.scan(collection, .sequences())
            #expect(changes.map(\.id) == ["a", "c", "e", "b"])
            #expect(changes.map(\.isRemoved) == [false, false, true, true])
            _ = try backend.write([.put("f", "6", in: collection)])
        }
    }

    @Test func forgetsWhatIsNotToBeRemembered() throws {
        let identity: UInt64
        do {
            let backend = try images.open()
            let collection = try backend.open("c", indexes: ["name"], hasSequences: true)
            _ = try backend.write([
                .put(PluginRecord("a", "1"), keys: [[1]], in: collection), .put("b", "1", in: collection),
            ])
            _ = try backend.write([.remove("b", in: collection)])
            identity = try backend.history(of: collection).identity
            _ = try backend.open("c")
        }
        do {
            let backend = try images.open()
            let collection = try backend.open("c", indexes: ["name"], hasSequences: true)
            #expect(try backend.history(of: collection).identity != identity)
            let reader = try backend.reader()
            #expect(try reader.scan(collection, .sequences()).map(\.id) == ["a"])
            #expect(try reader.scan(collection, PluginRange(.key(index: 0))) == [])
        }
        let backend = try images.open()
        let collection = try backend.openAsItIs("c", format: "json")
        #expect(try backend.reader().count(collection) == 1)
    }

    @Test func countsWhatItFinds() throws {
        let item = String(repeating: "x", count: 22)
        do {
            let backend = try images.open(more: #", "max_bytes": 240"#)
            let collection = try backend.open("c")
            let outcomes = try backend.write([
                .put("a", item, in: collection), .put("b", item, in: collection), .put("c", item, in: collection),
            ])
            #expect(outcomes == [.created, .created, .noSpace])
        }
        let backend = try images.open(more: #", "max_bytes": 240"#)
        let collection = try backend.open("c")
        #expect(try backend.write([.put("c", item, in: collection)]) == [.noSpace])
        #expect(
            try backend.write([.remove("a", in: collection), .put("c", item, in: collection)]) == [.removed, .created])
    }

    @Test func undoesAnAtomicBatchInTheLogToo() throws {
        let backend = try images.open()
        let collection = try backend.open("c")
        let outcomes = try backend.write(
            [.put("a", "1", in: collection), .remove("none", in: collection)], isAtomic: true)
        #expect(outcomes == [.created, .notFound])
        _ = try backend.write([.put("b", "1", in: collection)])
        let again = try images.open(images.copy())
        #expect(try again.reader().scan(again.open("c")).map(\.id) == ["b"])
    }

    // MARK: Damage

    @Test func aTornBatchIsTheEndAndDamageIsRefused() throws {
        let before: String
        let after: String
        do {
            let backend = try images.open()
            let collection = try backend.open("c")
            _ = try backend.write([.put("a", "1", in: collection)])
            before = try images.copy()
            _ = try backend.write([.put("a", "2", in: collection), .put("b", "2", in: collection)])
            after = try images.copy()
        }
        let name = try #require(
            try images.segments().first { try Files.read("\(before)/\($0)") != Files.read("\(after)/\($0)") })
        let (old, new) = (try Files.read("\(before)/\(name)"), try Files.read("\(after)/\(name)"))
        let changed = old.indices.filter { old[$0] != new[$0] }
        for end in stride(from: changed[0], through: changed[changed.count - 1], by: 7) {
            try Files.write(Array(new[..<end] + old[end...]), to: "\(after)/\(name)", mode: 0o600)
            let backend = try images.open(after)
            #expect(try backend.reader().scan(backend.open("c")) == [PluginRecord("a", "1")], "\(end)")
        }
        for offset in stride(from: 4096, to: changed[0], by: 5) {
            var damaged = new
            damaged[offset] ^= 1
            try Files.write(damaged, to: "\(after)/\(name)", mode: 0o600)
            let error = try #require(errorOfOpening(after), "\(offset)")
            #expect(error.status == CRUDD_CORRUPT)
            #expect(error.message.contains("\(after)/\(name) is damaged at offset"))
        }
    }

    /// A removal is trimmed that the history had forgotten already, as its old place had: nothing has to be written for
    /// that, and nothing of it is left in what is rewritten.
    @Test func trimsWhatWasForgottenElsewhere() throws {
        let item = String(repeating: "x", count: 700)
        let backend = try images.open()
        let collection = try backend.open("c", hasSequences: true)
        let removals = (1...200).map { (id: "removed \($0)", sequence: UInt64($0)) }
        backend.call.now = 1
        try backend.takeHistory(of: collection, identity: 9, forgotten: 0, lastSequence: 200, removals: removals)
        try backend.takeHistory(of: collection, identity: 9, forgotten: 200, lastSequence: 200)
        backend.call.now = 10
        #expect(try backend.history(of: collection, trimming: 500, before: 5).forgotten == 200)
        // In the memory that is free now, and again and again until all of the log has been rewritten.
        for round in 0..<60 {
            let records = (0..<100).map { number in
                let sequence = UInt64(300 + round * 100 + number)
                return PluginRecord("\(number)", bytes: Array("\(item) \(round)".utf8), sequence: sequence)
            }
            _ = try backend.write(records.map { .put($0, in: collection) })
        }
        let again = try images.open(images.copy())
        let reader = try again.reader()
        let found = try again.open("c", hasSequences: true)
        #expect(try reader.count(found) == 100)
        #expect(try reader.scan(found, .sequences()).count == 100)
    }

    /// What does not grow is stored also where there is more than there may be.
    @Test func replacesBeyondMaxBytes() throws {
        let item = String(repeating: "x", count: 1 << 20)
        do {
            let backend = try images.open()
            let collection = try backend.open("c")
            _ = try backend.write((0..<3).map { .put("\($0)", item, in: collection) })
        }
        let backend = try images.open(more: #", "max_bytes": 1048576"#)
        let collection = try backend.open("c")
        #expect(try backend.write([.put("0", "1", in: collection)]).first == .replaced)
        #expect(try backend.write([.put("1", item, in: collection)]).first == .replaced)
        #expect(try backend.write([.put("3", "1", in: collection)]).first == .noSpace)
    }

    // MARK: Size

    /// Few records that are written again and again, beside many that are never.
    @Test func staysBounded() throws {
        let item = String(repeating: "x", count: 1000)
        let backend = try images.open()
        let collection = try backend.open("c", hasSequences: true)
        for start in stride(from: 0, to: 4000, by: 100) {
            _ = try backend.write((start..<start + 100).map { .put("cold \($0)", item, in: collection) })
        }
        for number in 0..<600 {
            _ = try backend.write((0..<50).map { .put("hot \($0 + number % 7)", item, in: collection) })
            #expect(try images.totalBytes <= 4_500_000 * 5 / 2 + 4 << 20, "\(number)")
        }
        // Each of them is remembered for a while.
        backend.call.now = 1
        for start in stride(from: 0, to: 4000, by: 100) {
            _ = try backend.write((start..<start + 100).map { .remove("cold \($0)", in: collection) })
        }
        backend.call.now = 10
        #expect(try backend.history(of: collection, trimming: 5000, before: 5).trimmed == 4000)
        for _ in 0..<50 { backend.idle() }
        #expect(try images.totalBytes <= 6 << 20)
        let again = try images.open(images.copy())
        #expect(try again.reader().scan(again.open("c", hasSequences: true)).map(\.id).count == 56)
    }

    // MARK: At random

    /// What is found after a crash at any moment is what was there.
    @Test(arguments: [1, 2, 3, 4] as [UInt64]) func isFoundAsItWas(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var backend = try images.open()
        var path = images.path
        let names = ["one", "two"]
        func openAll() throws -> [PluginCollection] {
            try names.map { try backend.open($0, indexes: ["i"], hasSequences: $0 == "one") }
        }
        var collections = try openAll()
        var expected: [[String: PluginRecord]] = [[:], [:]]
        var removals = 0
        for round in 0..<300 {
            let which = Int.random(in: 0...1, using: &random)
            let collection = collections[which]
            var mutations: [PluginMutation] = []
            for _ in 0..<Int.random(in: 1...40, using: &random) {
                let id = "\(Int.random(in: 0..<200, using: &random))"
                if Int.random(in: 0..<4, using: &random) == 0 {
                    if expected[which].removeValue(forKey: id) != nil, which == 0 { removals += 1 }
                    mutations.append(.remove(id, in: collection))
                } else {
                    let size = Int.random(in: 0..<3000, using: &random)
                    let record = PluginRecord(
                        id, bytes: [UInt8](repeating: UInt8(size & 255), count: size), revision: "\(round)")
                    expected[which][id] = record
                    mutations.append(
                        .put(record, keys: [size.isMultiple(of: 3) ? [] : [UInt8(size & 255)]], in: collection))
                }
            }
            _ = try backend.write(mutations)
            if round % 50 == 49 {
                _ = try backend.history(of: collections[0], trimming: 20, before: .max)
                removals = max(0, removals - 20)
            }
            guard round % 10 == 9 else { continue }
            if round % 30 == 29 { backend.idle() }
            path = try images.copy(of: path)
            backend = try images.open(path)
            collections = try openAll()
            let reader = try backend.reader()
            for (records, collection) in zip(expected, collections) {
                let inOrder = records.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map(\.value)
                try #require(try reader.scan(collection) == inOrder, "seed \(seed), round \(round)")
                let keyed = inOrder.count { !$0.bytes.count.isMultiple(of: 3) }
                #expect(try reader.count(collection, PluginRange(.key(index: 0))) == keyed)
            }
            let changes = try reader.scan(collections[0], .sequences())
            #expect(changes.count { $0.isRemoved } == removals)
            #expect(changes.count { !$0.isRemoved } == expected[0].count)
        }
    }

    // MARK: Full disks

    /// Has the log be on a disk of that size, for the caller to unmount.
    private func mountDisk(_ size: String) throws {
        try Files.makeDirectory(images.path, mode: 0o700)
        let outcome = try Command.run(
            "mount", ["-t", "tmpfs", "-o", "size=\(size),mode=0700", "crudd-test", images.path])
        guard outcome.status == .exited(0) else { throw Failure("mount: \(outcome.errors)") }
    }

    @Test(.enabled(if: geteuid() == 0, "needs root to mount a file system")) func deletionsMakeRoomOnAFullDisk() throws
    {
        try mountDisk("6m")
        defer { _ = try? Command.run("umount", ["--lazy", images.path]) }
        let backend = try images.open()
        let collection = try backend.open("c", hasSequences: true)
        let item = String(repeating: "x", count: 20_000)
        var ids: [String] = []
        func fill(_ prefix: String) throws {
            while ids.count < 1000 {
                let id = "\(prefix)\(ids.count)"
                do throws(CallError) {
                    _ = try backend.write([.put(id, item, in: collection)])
                } catch {
                    #expect(error.status == CRUDD_NO_SPACE)
                    return
                }
                ids.append(id)
            }
            Issue.record("the disk is never full")
        }
        try fill("a")
        let count = ids.count
        #expect(count > 100)
        #expect(backend.states.last?.reason.contains("there is no room") == true)
        for round in 0..<10 {
            // A removal is applied though what comes with it is refused.
            #expect(
                try backend.write([.remove(ids.removeFirst(), in: collection), .put("b", item, in: collection)]).first
                    == .removed)
            _ = try backend.write([.remove("b", in: collection)])
            for _ in 0..<30 { _ = try backend.write([.remove(ids.removeFirst(), in: collection)]) }
            try fill("round \(round) ")
            #expect(ids.count >= count * 19 / 20, "\(round)")
        }
        let again = try images.open(images.copy())
        #expect(try again.reader().count(again.open("c", hasSequences: true)) == ids.count)
    }

    /// Records can be deleted though what would be rewritten with that finds no room.
    @Test(.enabled(if: geteuid() == 0, "needs root to mount a file system"))
    func deletionsNeedNoRoomForALongRecord() throws {
        try mountDisk("12m")
        defer { _ = try? Command.run("umount", ["--lazy", images.path]) }
        let backend = try images.open()
        let collection = try backend.open("c")
        _ = try backend.write([.put("long", String(repeating: "x", count: 2_500_000), in: collection)])
        try Files.write(String(repeating: "x", count: 1 << 20), to: "\(images.path)/other")
        let item = String(repeating: "x", count: 20_000)
        var refusals = 0
        for number in 0..<400 {
            do throws(CallError) {
                _ = try backend.write([.put("\(number % 20)", item, in: collection)])
            } catch {
                #expect(error.status == CRUDD_NO_SPACE)
                refusals += 1
            }
        }
        #expect(refusals > 0)
        #expect(try backend.write([.remove("5", in: collection)]).first == .removed)
        #expect(try backend.write([.remove("long", in: collection)]).first == .removed)
        for _ in 0..<50 { backend.idle() }
        #expect(try backend.write([.put("5", item, in: collection)]).first == .created)
    }
}
