import CRUDModel
import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport
import Testing

/// What people find in the directory, and what they may do to it.
@Suite struct FileTests {
    private let directory: RecordDirectory
    private let backend: PluginBackend
    private let collection: PluginCollection
    private let reader: PluginReader

    init() throws {
        directory = try RecordDirectory()
        backend = try directory.open()
        collection = try backend.open("clients")
        reader = try backend.reader()
    }

    // MARK: Names

    @Test(arguments: [
        ("a", "item_a"), ("A-z_9", "item_A-z_9"), (".", "item_%2E"), ("..", "item_%2E%2E"),
        ("../../etc/passwd", "item_%2E%2E%2F%2E%2E%2Fetc%2Fpasswd"), ("a b", "item_a%20b"), ("é", "item_%C3%A9"),
        ("%~", "item_%25%7E"),
    ])
    func namesFilesAsDocumented(id: String, name: String) throws {
        _ = try backend.write([.put(id, "{}", revision: "r1", in: collection)])
        #expect(try directory.names(in: "clients") == ["\(name).json"])
        #expect(try directory.read("clients/\(name).json") == "{}")
        #expect(directory.attribute("user.crudd.revision", of: "clients/\(name).json") == "r1")
        #expect(directory.attribute("user.crudd.id", of: "clients/\(name).json") == nil)
    }

    @Test(arguments: ["json", "xml", "plist"])
    func namesFormats(format: String) throws {
        let collection = try backend.open("Clients Database", format: format)
        _ = try backend.write([.put("a", "{}", in: collection)])
        #expect(try directory.names(in: "Clients%20Database") == ["item_a.\(format)"])
    }

    @Test func shortensLongNames() throws {
        let whole = String(repeating: "%F0%9F%98%80", count: 128)
        let id = String(repeating: "\u{1F600}", count: 128)
        let name = "item_\(whole.prefix(100))%~\(SHA256.digest(whole.utf8)).json"
        _ = try backend.write([.put(id, "{}", in: collection)])
        #expect(try directory.names(in: "clients") == [name])
        #expect(directory.attribute("user.crudd.id", of: "clients/\(name)") == id)
        #expect(try reader.scan(collection) == [PluginRecord(id, "{}")])
    }

    @Test func shortensLongNamesOfCollections() throws {
        let whole = String(repeating: "%F0%9F%98%80", count: 32)
        let name = String(repeating: "\u{1F600}", count: 32)
        _ = try backend.open(name)
        let directoryName = "\(whole.prefix(100))%~\(SHA256.digest(whole.utf8))"
        #expect(try directory.names() == [directoryName, ".identity", ".lock", "clients"])
        #expect(directory.attribute("user.crudd.name", of: directoryName) == name)
        #expect(try backend.collections() == ["clients", name])
    }

    @Test func leavesNothingButTheRecord() throws {
        _ = try backend.write([.put("a", "1", in: collection), .put("a", "2", in: collection)])
        #expect(try directory.names(in: "clients") == ["item_a.json"])
        _ = try backend.write([.remove("a", in: collection)])
        #expect(try directory.names(in: "clients") == [])
    }

    // MARK: Files written by hand

    @Test func readsAFileWrittenByHand() throws {
        try directory.write("{\"by\":\"hand\"}\n", to: "clients/item_new%20one.json")
        let record = try #require(try reader.read("new one", in: collection))
        #expect(record.item == "{\"by\":\"hand\"}\n")
        #expect((1...64).contains(record.revision.utf8.count))
        #expect(try reader.read("new one", in: collection) == record)
        #expect(try reader.scan(collection) == [record])
        let outcomes = try backend.write([
            .put("new one", "1", if: .revision("other"), in: collection),
            .put("new one", "2", if: .revision(record.revision), in: collection),
        ])
        #expect(outcomes == [.mismatch(current: record.revision), .replaced])
    }

    @Test func derivesAnotherRevisionWhenTheFileChanges() throws {
        var revisions: Set<String> = []
        for text in ["1", "22", "333"] {
            try directory.write(text, to: "clients/item_a.json")
            revisions.insert(try #require(try reader.read("a", in: collection)).revision)
        }
        // Another file of the same size.
        try directory.write("444", to: "other")
        guard rename("\(directory.path)/other", "\(directory.path)/clients/item_a.json") == 0 else {
            throw Failure.system("rename")
        }
        revisions.insert(try #require(try reader.read("a", in: collection)).revision)
        #expect(revisions.count == 4)
    }

    /// The attribute is still there, but of another content.
    @Test func derivesARevisionWhenARecordIsEditedInPlace() throws {
        _ = try backend.write([.put("a", "1", revision: "r1", in: collection)])
        try directory.write("22", to: "clients/item_a.json")
        let record = try #require(try reader.read("a", in: collection))
        #expect(record.item == "22")
        #expect(record.revision != "r1")
        #expect(
            try backend.write([.put("a", "3", if: .revision("r1"), in: collection)])
                == [.mismatch(current: record.revision)])
    }

    @Test func takesARevisionSetByHand() throws {
        try directory.write("1", to: "clients/item_a.json")
        try directory.setAttribute("user.crudd.revision", to: "mine", of: "clients/item_a.json")
        #expect(try reader.read("a", in: collection) == PluginRecord("a", "1", revision: "mine"))
        try directory.setAttribute("user.crudd.revision", to: "two words", of: "clients/item_a.json")
        #expect(try reader.read("a", in: collection)?.revision.contains(" ") == false)
    }

    @Test func noticesFilesRemovedByHand() throws {
        _ = try backend.write([.put("a", "1", in: collection), .put("b", "1", in: collection)])
        Files.remove("\(directory.path)/clients/item_a.json")
        #expect(try reader.read("a", in: collection) == nil)
        #expect(try reader.count(collection) == 1)
        #expect(try backend.write([.remove("a", in: collection)]) == [.notFound])
        Files.remove("\(directory.path)/clients")
        #expect(try reader.scan(collection) == [])
        #expect(try backend.write([.put("a", "1", if: .present, in: collection)]) == [.notFound])
        #expect(try backend.write([.put("a", "1", in: collection)]) == [.created])
        #expect(try reader.count(collection) == 1)
    }

    // MARK: Things that are not ours

    /// Plants something in the place of the record `id`.
    private func plant(_ thing: ForeignThing, at path: String, target: String) throws {
        let outcome =
            switch thing {
            case .link: symlink(target, path)
            case .danglingLink: symlink("\(target)-none", path)
            case .fifo: mkfifo(path, 0o666)
            }
        guard outcome == 0 else { throw Failure.system("plant \(thing)") }
    }

    enum ForeignThing: CaseIterable {
        case link, danglingLink, fifo
    }

    @Test(arguments: ForeignThing.allCases)
    func ignoresWhatIsNoFile(thing: ForeignThing) throws {
        try directory.write("secret", to: "target")
        let path = "\(directory.path)/clients/item_a.json"
        try plant(thing, at: path, target: "\(directory.path)/target")
        for _ in 0..<3 {
            #expect(try reader.read("a", in: collection) == nil)
            #expect(try reader.scan(collection) == [])
            #expect(try reader.count(collection) == 0)
            #expect(try backend.write([.remove("a", in: collection)]) == [.notFound])
        }
        #expect(backend.logged.filter { $0.contains("item_a.json") }.count == 1)
        // It makes room.
        #expect(try backend.write([.put("a", "1", if: .absent, in: collection)]) == [.created])
        #expect(try reader.count(collection) == 1)
        #expect(try directory.read("target") == "secret")
        #expect(!Files.exists("\(directory.path)/target-none"))
        #expect(try directory.names(in: "clients") == ["item_a.json"])
    }

    /// A directory in the place of a record's file is a record that cannot be read.
    @Test func aDirectoryInPlaceOfARecordIsCorruptByItself() throws {
        _ = try backend.write([.put("b", "2", in: collection), .put("0", "0", in: collection)])
        try Files.makeDirectory("\(directory.path)/clients/item_a.json")
        for _ in 0..<3 {
            let record = try #require(try reader.read("a", in: collection))
            #expect(record.item.isEmpty)
            #expect(try reader.scan(collection).map(\.id) == ["0", "a", "b"])
            #expect(try reader.count(collection) == 3)
            #expect(try backend.write([.put("a", "1", if: .absent, in: collection)]) == [.exists])
        }
        #expect(backend.logged.filter { $0.contains("item_a.json is a directory") }.count == 1)
        // One with content stays.
        try directory.write("mine", to: "clients/item_a.json/file")
        let outcomes = try backend.write([
            .put("a", "1", in: collection), .remove("a", in: collection), .put("c", "3", in: collection),
        ])
        #expect(outcomes == [.refused(CRUDD_CORRUPT), .refused(CRUDD_CORRUPT), .created])
        #expect(try directory.read("clients/item_a.json/file") == "mine")
        #expect(try directory.names(in: "clients") == ["item_0.json", "item_a.json", "item_b.json", "item_c.json"])
        // An empty one does not.
        Files.remove("\(directory.path)/clients/item_a.json/file")
        #expect(try backend.write([.put("a", "1", in: collection)]).count == 1)
        #expect(try directory.read("clients/item_a.json") == "1")
        try Files.makeDirectory("\(directory.path)/clients/item_d.json")
        #expect(try backend.write([.remove("d", if: .present, in: collection)]).count == 1)
        #expect(!Files.exists("\(directory.path)/clients/item_d.json"))
    }

    /// It is foreign where it is no record's: of another format, or with a name that does not tell the id.
    @Test func otherDirectoriesAreIgnored() throws {
        let shortened = "item_\(String(repeating: "a", count: 100))%~\(String(repeating: "0", count: 64)).json"
        for name in ["item_a.xml", shortened, "notes"] { try Files.makeDirectory("\(directory.path)/clients/\(name)") }
        for _ in 0..<2 {
            #expect(try reader.scan(collection) == [])
            #expect(try reader.count(collection) == 0)
        }
        #expect(backend.logged.count == 3, "\(backend.logged)")
    }

    @Test func keepsDirectoriesInPlaceOfRecordsWhenACollectionIsDropped() throws {
        _ = try backend.write([.put("a", "1", in: collection)])
        try Files.makeDirectory("\(directory.path)/clients/item_b.json")
        try Files.makeDirectory("\(directory.path)/clients/item_c.json")
        try directory.write("mine", to: "clients/item_c.json/file")
        try backend.drop("clients")
        #expect(try directory.names(in: "clients") == ["item_c.json"])
    }

    @Test(arguments: [
        "notes.txt", "item_a.json~", "item_a.txt", "item_%61.json", "item_%2e.json", "item_%.json", "item_.json",
        "item_a.b.json", ".hidden", "item_%FF.json", "item_%00.json", "ITEM_a.json",
        "item_\(String(repeating: "a", count: 100))%~\(String(repeating: "0", count: 64)).json",
    ])
    func ignoresForeignNames(name: String) throws {
        try directory.write("1", to: "clients/\(name)")
        for _ in 0..<2 {
            #expect(try reader.scan(collection) == [])
            #expect(try reader.count(collection) == 0)
        }
        #expect(backend.logged.count == 1)
        #expect(backend.logged.first?.contains("clients/\(name)") == true)
    }

    @Test func ignoresLinksInPlaceOfCollections() throws {
        try Files.makeDirectory("\(directory.path)-elsewhere")
        defer { Files.remove("\(directory.path)-elsewhere") }
        guard symlink("\(directory.path)-elsewhere", "\(directory.path)/linked") == 0 else {
            throw Failure.system("symlink")
        }
        #expect(try backend.collections() == ["clients"])
        #expect(throws: CallError.self) { try backend.open("linked", creates: false) }
        #expect(throws: CallError.self) { try backend.open("linked") }
        #expect(try Files.names(in: "\(directory.path)-elsewhere") == [])
    }

    @Test func keepsForeignFilesWhenACollectionIsDropped() throws {
        _ = try backend.write([.put("a", "1", in: collection)])
        try directory.write("mine", to: "clients/notes.txt")
        try backend.drop("clients")
        #expect(try directory.names(in: "clients") == ["notes.txt"])
        #expect(backend.logged.contains { $0.contains("clients") })
    }
}
