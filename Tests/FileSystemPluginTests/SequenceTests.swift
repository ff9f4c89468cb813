import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport
import Testing

/// Sequence numbers, and that none is used twice.
@Suite struct SequenceTests {
    private static let block: UInt64 = 1 << 20

    private let directory: RecordDirectory

    init() throws {
        directory = try RecordDirectory()
    }

    private func put(_ id: String, sequence: UInt64, in collection: PluginCollection) -> PluginMutation {
        .put(PluginRecord(id, bytes: Array("{}".utf8), sequence: sequence), in: collection)
    }

    @Test func keepsTheNumberInAnAttribute() throws {
        let backend = try directory.open()
        let collection = try backend.open("clients")
        _ = try backend.write([put("a", sequence: 7, in: collection)])
        #expect(directory.attribute("user.crudd.sequence", of: "clients/item_a.json") == "7")
        #expect(try backend.reader().read("a", in: collection)?.sequence == 7)
        #expect(try backend.reader().scan(collection).map(\.sequence) == [7])
    }

    @Test func takesFilesWithoutANumber() throws {
        let backend = try directory.open()
        let collection = try backend.open("clients")
        try directory.write("{}", to: "clients/item_a.json")
        // As earlier versions have left it.
        try directory.setAttribute("user.crudd.revision", to: "r1", of: "clients/item_a.json")
        let record = try #require(try backend.reader().read("a", in: collection))
        #expect(record == PluginRecord("a", "{}", revision: "r1"))
        #expect(record.sequence == 0)
        #expect(backend.storedLastSequence == 0)
    }

    @Test func reservesBlocks() throws {
        let backend = try directory.open()
        let collection = try backend.open("clients")
        #expect(try directory.names() == [".identity", ".lock", "clients"])
        var ceilings: [String] = []
        for sequence in [1, Self.block - 1, Self.block, Self.block * 5 + 3] {
            _ = try backend.write([put("a", sequence: sequence, in: collection)])
            ceilings.append(try directory.read(".sequence"))
        }
        let expected = [Self.block - 1, Self.block - 1, Self.block * 2 - 1, Self.block * 6 - 1]
        #expect(ceilings == expected.map { "\($0)\n" })
        #expect(try directory.names() == [".identity", ".lock", ".sequence", "clients"])
        #expect(Files.status("\(directory.path)/.sequence")?.st_mode == S_IFREG | 0o600)
        #expect(try backend.collections() == ["clients"])
        #expect(backend.logged == [])
    }

    /// The host numbers removals too.
    @Test func usesNoNumberTwice() throws {
        var highest: UInt64 = 0
        for _ in 0..<3 {
            let backend = try directory.open()
            #expect(backend.storedLastSequence >= highest)
            let collection = try backend.open("clients")
            _ = try backend.write([.put("a", "{}", in: collection), .put("b", "{}", in: collection)])
            _ = try backend.write([.remove("a", in: collection), .remove("b", in: collection)])
            try backend.drop("clients")
            highest = backend.highestSequence
        }
        #expect(highest > Self.block * 2)
    }

    @Test(arguments: ["", "x", "-1", "1e3"])
    func refusesAFileThatIsNoNumber(text: String) throws {
        do { _ = try directory.open() }
        try directory.write(text, to: ".sequence")
        let error = #expect(throws: CallError.self) { try directory.open() }
        #expect(error?.status == CRUDD_UNAVAILABLE)
        #expect(error?.message.contains(".sequence") == true)
    }

    @Test func removesAFileThatACrashHasLeft() throws {
        do { _ = try directory.open() }
        try directory.write("10", to: ".crudd-temporary-1f")
        let backend = try directory.open()
        #expect(try directory.names() == [".identity", ".lock"])
        #expect(backend.logged == [])
    }

    /// A number that tells the directory from others: a copy has it too, and another directory another one.
    @Test func hasAnIdentity() throws {
        let identity: UInt64
        do { identity = try directory.open().identity }
        #expect(identity != 0)
        do { #expect(try directory.open().identity == identity) }
        #expect(try RecordDirectory().open().identity != identity)
        #expect(try directory.read(".identity") == "\(identity)\n")
        for text in ["", "x", "-1", "0"] {
            try directory.write(text, to: ".identity")
            let error = #expect(throws: CallError.self) { try directory.open() }
            #expect(error?.status == CRUDD_UNAVAILABLE && error?.message.contains(".identity") == true)
        }
    }
}
