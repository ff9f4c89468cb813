import CRUDModel
import CRUDPlacement
import CRUDTestSupport
import Glibc
import Testing

/// What the catalog says survives restarts, failing disks and older files.
@Suite struct CatalogTests {
    private let state: StateDirectory

    init() throws { state = try StateDirectory() }

    @Test func placementsSurviveARestart() throws {
        let placements: [String: Placement] = [
            "clients": Placement(.resident(.main)), "\"quoted\\\"": Placement(.planned(.main, to: .other)),
            "😀é\u{2028}": Placement(.copying(.main, to: .other), originals: [.xml], obsolete: [.files]),
            "": Placement(.absent, obsolete: [.main, .files]),
            "feed": Placement(.resident(.main), owner: 7, beginsFeed: true),
        ]
        do {
            let catalog = try state.open()
            #expect(catalog.entries.isEmpty)
            try catalog.commit(
                placements.map { .init(Array($0.key.utf8), from: .none, to: $0.value) },
                storages: ["main": .init("a", at: "/a")])
            try catalog.set("clients", Placement(.resident(.other), originals: [.main]))
            try catalog.commit([], storages: ["main": .init("b", at: "/b\""), "other": .init("c")])
            try catalog.commit([], storages: ["other": .forgotten])
            try catalog.commit([], storages: ["third": .init("d", isUnsurveyed: true)])
        }
        let again = try state.open()
        #expect(again.entries.count == placements.count)
        #expect(again.placement("clients") == Placement(.resident(.other), originals: [.main]))
        for (name, placement) in placements where name != "clients" { #expect(again.placement(name) == placement) }
        #expect(again.storage(of: "main") == .init("b", at: "/b\"") && again.storage(of: "other") == nil)
        #expect(again.storage(of: "third") == .init("d", isUnsurveyed: true))
        #expect(Files.status(state.file)?.st_mode == S_IFREG | 0o600)
    }

    @Test func toReadItWritesNothing() throws {
        for text in ["", #"{"name":"a","backend":"main","format":"json"}"# + "\n" + #"{"na"#] {
            try state.prepare(text)
            _ = try state.open()
            #expect(try state.contents() == text)
            #expect(try Files.names(in: state.path) == ["collections.jsonl"])
        }
    }

    /// An equal entry is not the same.
    @Test func aChangeIsBasedOnAVersion() throws {
        let catalog = try state.open()
        try catalog.set("a", Placement(.resident(.main)))
        let name = Array("a".utf8)
        let entry = catalog.entry(name)
        try catalog.set("a", Placement(.planned(.main, to: .other)))
        try catalog.set("a", Placement(.resident(.main)))
        let transition = Catalog.Transition(name, from: entry, to: Placement(.resident(.other)))
        let other = Catalog.Transition(Array("b".utf8), from: .none, to: Placement(.resident(.main)))
        #expect(throws: CatalogError.self) { try catalog.commit([other, transition]) }
        #expect(catalog.placement("a") == Placement(.resident(.main)))
        #expect(catalog.placement("b") == .none, "all or none")
    }

    /// No start would accept the file.
    @Test(arguments: [
        Placement(.resident(.main), originals: [.main]), Placement(.resident(.main), obsolete: [.main]),
        Placement(.absent, originals: [.main], obsolete: [.main]),
        Placement(.copying(.main, to: .other), obsolete: [.other]), Placement(.absent, beginsFeed: true),
    ])
    func whatIsInvalidIsNotWritten(placement: Placement) throws {
        let state = try StateDirectory()
        let catalog = try state.open()
        try catalog.set("a", Placement(.resident(.other)))
        let before = try state.contents()
        let error = #expect(throws: CatalogError.self) { try catalog.set("a", placement) }
        #expect(error?.error.code == .internalError)
        #expect(try state.contents() == before)
        #expect(catalog.placement("a") == Placement(.resident(.other)))
    }

    @Test func anEntryEnds() throws {
        let catalog = try state.open()
        try catalog.set("a", Placement(.resident(.main)))
        try catalog.set("a", Placement(.absent, obsolete: [.main]))
        #expect(catalog.names.count == 0 && catalog.restless == [Array("a".utf8)])
        try catalog.set("a", .none)
        #expect(catalog.entries.isEmpty && catalog.restless.isEmpty)
        #expect(try state.open().entries.isEmpty)
    }

    // MARK: Creation

    @Test func creationsAreAdmittedOnce() throws {
        let catalog = try state.open()
        catalog.follow(try CollectionRules([rule("named"), rule("*")]), maximumByPattern: 2)
        for name in ["a", "b", "named", "a"] { #expect(catalog.admit(Array(name.utf8), at: .main) == nil) }
        let size = try state.contents().utf8.count
        #expect(catalog.admit(Array("a".utf8), at: .main) == nil)
        #expect(try state.contents().utf8.count == size)
        #expect(catalog.admit(Array("c".utf8), at: .main)?.code == .limitExceeded)
        #expect(catalog.admit(Array("c".utf8), at: .main, isNew: false) == nil, "it is there already")
        #expect(catalog.admit(Array("a".utf8), at: .other)?.code == .unavailable)
        let names = catalog.names.parts.flatMap(\.names).map { String(decoding: $0, as: UTF8.self) }
        #expect(names == ["a", "b", "c", "named"])
        catalog.follow(try CollectionRules([rule("*")]), maximumByPattern: 4)
        #expect(catalog.admit(Array("d".utf8), at: .main)?.code == .limitExceeded)
        try catalog.set("a", Placement(.absent, obsolete: [.main]))
        #expect(catalog.admit(Array("a".utf8), at: .main)?.code == .unavailable, "it is being removed")
        #expect(catalog.admit(Array("d".utf8), at: .main) == nil)
    }

    private func rule(_ pattern: String) throws -> CollectionRule {
        CollectionRule(
            pattern: try CollectionPattern(Array(pattern.utf8)), backend: "main", format: .json, indexes: [],
            position: .start)
    }

    // MARK: Size

    @Test func historyIsCompacted() throws {
        let catalog = try state.open()
        for name in 0..<10 { try catalog.set("\(name)", Placement(.resident(.main))) }
        for round in 0..<1200 {
            try catalog.set("5", round % 2 == 0 ? Placement(.planned(.main, to: .other)) : Placement(.resident(.main)))
            #expect(Files.status(state.file).map { $0.st_size < 66 << 10 } == true)
        }
        #expect(try state.open().entries.mapValues(\.placement) == catalog.entries.mapValues(\.placement))
    }

    @Test func aLongRecordReplacesTheFile() throws {
        let catalog = try state.open()
        try catalog.set("a", Placement(.resident(.main)))
        let before = Files.status(state.file)?.st_ino
        try catalog.commit(
            (0..<100).map { .init(Array("\($0)".utf8), from: .none, to: Placement(.resident(.main))) })
        #expect(Files.status(state.file)?.st_ino != before)
        #expect(try state.open().entries.count == 101)
    }

    // MARK: Damage

    @Test func aLineWithoutAnEndIsIgnored() throws {
        try state.open().set("a", Placement(.resident(.main)))
        try state.open().set("b", Placement(.resident(.main)))
        let text = try state.contents()
        for rest in ["{", "0", "\0\0\0", "12345678 {\"collections\":[]}", "not a line"] {
            try state.prepare(text + rest)
            let catalog = try state.open()
            #expect(catalog.entries.count == 2)
            #expect(try state.contents() == text + rest)
            try catalog.set("c", Placement(.resident(.main)))
            #expect(try state.open().entries.count == 3)
        }
    }

    /// Each byte of each line but the last LF.
    @Test func everyOtherDamageIsFound() throws {
        let catalog = try state.open()
        try catalog.set("a", Placement(.copying(.main, to: .other), originals: [.xml]))
        try catalog.set("b", Placement(.resident(.main)))
        let text = Array(try state.contents().utf8)
        for index in text.indices.dropLast() {
            var damaged = text
            damaged[index] ^= 0x01
            try Files.write(damaged, to: state.file, mode: 0o600)
            #expect(throws: CatalogDamage.self, "byte \(index)") { try state.open() }
            #expect(try Files.read(state.file) == damaged)
        }
    }

    @Test(arguments: [
        #"{"catalog":3}"#, #"{"catalog":2}"# + "\n" + #"{"moves":[]}"#,
        #"{"catalog":2}"# + "\n" + #"{"collections":[{"name":"a","state":"asleep"}]}"#,
        #"{"catalog":2}"# + "\n" + #"{"collections":[{"name":"a","state":"absent","color":"red"}]}"#,
        #"{"catalog":2}"# + "\n" + #"{"collections":[{"name":"a","state":"resident"}]}"#,
    ])
    func whatANewerCruddHasWritten(text: String) throws {
        let lines = text.split(separator: "\n").map { line in
            let digits = String(checksum(Array(line.utf8)), radix: 16)
            return String(repeating: "0", count: 8 - digits.count) + digits + " " + line + "\n"
        }
        try state.prepare(lines.joined())
        let error = #expect(throws: CatalogDamage.self) { try state.open() }
        #expect(error?.description.contains("newer crudd") == true)
    }

    /// CRC-32C bit by bit, apart from the table of the daemon.
    private func checksum(_ bytes: [UInt8]) -> UInt32 {
        var crc = ~UInt32(0)
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
        }
        return ~crc
    }

    @Test func theChecksumIsCRC32C() { #expect(checksum(Array("123456789".utf8)) == 0xE306_9283) }

    // MARK: Version 1

    @Test func filesOfTheFirstVersionAreRead() throws {
        let places = #""backend":"main","format":"json""#
        let other = #""backend":"other","format":"json""#
        try state.prepare(
            """
            {"name":"a",\(places)}
            {"name":"gone",\(places)}
            {"name":"p",\(places),"move":{"state":"planned",\(other)}}
            {"name":"c",\(places),"move":{"state":"copying",\(other)},"originals":[{"backend":"main","format":"xml"}]}
            {"name":"r",\(places),"move":{"state":"removing",\(other)}}
            {"name":"gone"}

            """)
        let catalog = try state.open()
        #expect(catalog.entries.count == 4)
        #expect(catalog.placement("a") == Placement(.resident(.main)))
        #expect(catalog.placement("p") == Placement(.planned(.main, to: .other)))
        #expect(catalog.placement("c") == Placement(.copying(.main, to: .other), originals: [.xml]))
        #expect(catalog.placement("r") == Placement(.resident(.main), obsolete: [.other]))
        try catalog.set("a", Placement(.resident(.files)))
        let again = try state.open()
        #expect(again.entries.mapValues(\.placement) == catalog.entries.mapValues(\.placement))
        #expect(try !state.contents().hasPrefix("{"))
    }

    @Test(arguments: ["{}", #"{"name":"b","backend":"main"}"#, "nothing", #"{"name":7}"#])
    func damageOfTheFirstVersionIsFound(line: String) throws {
        let first = #"{"name":"a","backend":"main","format":"json"}"# + "\n"
        try state.prepare(first + line + "\n" + first)
        #expect(throws: CatalogDamage.self) { try state.open() }
    }
}
