import CRUDModel
import CRUDStorage
import CRUDTestSupport
import Glibc
import Testing

/// What the daemon remembers of its collections survives restarts, crashes and full disks.
@Suite struct CollectionCatalogTests {
    private let directory: TemporaryDirectory
    private var path: String { "\(directory.path)/state" }
    private var file: String { "\(path)/collections.jsonl" }

    private let rules: CollectionRules

    init() throws {
        directory = try TemporaryDirectory()
        rules = try CollectionRules([CollectionRule("*")])
    }

    private func open(rules: CollectionRules? = nil, maximum: Int = 1000) throws -> CollectionCatalog {
        try CollectionCatalog(directory: path, rules: rules ?? self.rules, maximumBornByGlob: maximum)
    }

    private func entry(_ name: String, backend: String = "main", format: CollectionRule.Format = .json)
        -> CollectionCatalog.Entry
    {
        .init(name: Array(name.utf8), place: CollectionPlace(backend: backend, format: format))
    }

    /// The names of the entries.
    private func names(_ catalog: CollectionCatalog) -> [String] {
        catalog.entries.map { String(decoding: $0.name, as: UTF8.self) }.sorted()
    }

    /// Makes the file that an earlier run has left.
    private func prepare(_ text: String) throws {
        try Files.makeDirectory(path, mode: 0o700)
        try Files.write(text, to: file, mode: 0o600)
    }

    private func contents() throws -> String { String(decoding: try Files.read(file), as: UTF8.self) }

    @Test func entriesSurviveARestart() throws {
        let entries = [
            entry("clients"), entry("Clients Database", backend: "other", format: .xml), entry("\"quoted\\\""),
            entry("😀é\u{2028}"), entry("\u{80}"),
        ]
        do {
            let catalog = try open()
            #expect(catalog.entries.isEmpty)
            for entry in entries { #expect(catalog.admit(entry) == nil) }
        }
        let again = try open()
        #expect(again.entries.count == entries.count)
        for entry in entries { #expect(again.entries.contains(entry)) }
        #expect(Files.status(path)?.st_mode == S_IFDIR | 0o700)
        #expect(Files.status(file)?.st_mode == S_IFREG | 0o600)
    }

    @Test func whatIsDroppedIsForgotten() throws {
        do {
            let catalog = try open(maximum: 2)
            for name in ["a", "b"] { #expect(catalog.admit(entry(name)) == nil) }
            #expect(catalog.admit(entry("c"))?.code == .limitExceeded)
            try catalog.forget(Array("a".utf8))
            try catalog.forget(Array("never there".utf8))
            #expect(catalog.admit(entry("c")) == nil)
            #expect(catalog.admit(entry("d"))?.code == .limitExceeded)
            #expect(names(catalog) == ["b", "c"])
        }
        #expect(names(try open()) == ["b", "c"])
    }

    @Test func entriesFollowTheRules() throws {
        do {
            let catalog = try open(maximum: 3)
            for name in ["a", "b", "c"] { #expect(catalog.admit(entry(name)) == nil) }
            #expect(catalog.admit(entry("d"))?.code == .limitExceeded)
            try catalog.follow(
                CollectionRules([
                    CollectionRule("a"), CollectionRule("b", backend: "other", .xml), CollectionRule("d*"),
                ]),
                maximumBornByGlob: 1)
            #expect(names(catalog) == ["a", "b"])
            #expect(catalog.entries.contains(entry("b", backend: "other", format: .xml)))
            #expect(catalog.admit(entry("d")) == nil)
            #expect(catalog.admit(entry("dd"))?.code == .limitExceeded, "the limit that is in force now")
        }
        let again = try open()
        #expect(names(again) == ["a", "b", "d"])
        #expect(again.entries.contains(entry("b", backend: "other", format: .xml)))
        let lines = try contents()
        try again.follow(
            CollectionRules([CollectionRule("b", backend: "other", .xml), CollectionRule("*")]), maximumBornByGlob: 9)
        #expect(try contents() == lines, "nothing has moved")
    }

    @Test func lineIsWrittenForEachNewEntryOnly() throws {
        let catalog = try open()
        for _ in 0..<3 { #expect(catalog.admit(entry("a")) == nil) }
        #expect(try contents() == #"{"name":"a","backend":"main","format":"json"}"# + "\n")
        #expect(catalog.admit(entry("a", backend: "other")) == nil)
        #expect(try contents().split(separator: "\n").count == 2)
        #expect(catalog.entries == [entry("a", backend: "other")])
        #expect(try open().entries == [entry("a", backend: "other")], "the last line of a name counts")
    }

    // MARK: Damage

    @Test(arguments: ["{", #"{"name":"b""#, #"{"name":"b","backend":"main","format":"json"}"#, "\0\0\0", "not a line"])
    func unfinishedLineIsCutOff(rest: String) throws {
        let line = #"{"name":"a","backend":"main","format":"json"}"# + "\n"
        try prepare(line + rest)
        do {
            let catalog = try open()
            #expect(names(catalog) == ["a"])
            #expect(try contents() == line)
            #expect(catalog.admit(entry("c")) == nil)
        }
        #expect(names(try open()) == ["a", "c"])
    }

    @Test(arguments: [
        "", "a line", "{}", "null", #"{"name":"x","backend":"main"}"#, #"{"name":1,"backend":"main","format":"json"}"#,
        #"{"name":"x","backend":"main","format":"json""#, "\0", #"{"name":"x","backend":"main","format":"json"}}"#,
        #"{"name":"x","backend":"main","format":"json"}{"name":"y","backend":"main","format":"json"}"#,
    ])
    func damageInTheMiddleIsAnError(line: String) throws {
        let good = #"{"name":"a","backend":"main","format":"json"}"# + "\n"
        let text = good + line + "\n" + good
        try prepare(text)
        let error = try #require(throws: SystemError.self) { _ = try open() }
        #expect(error.description.contains("collections.jsonl is damaged at byte \(good.utf8.count)"))
        #expect(try contents() == text, "nothing is removed")
    }

    @Test func unknownMembersAreIgnored() throws {
        try prepare(#" {"more":[1],"format":"json","name":"\u0061","backend":"main"} "# + "\n")
        #expect(try open().entries == [entry("a")])
    }

    @Test func catalogThatCannotBeOpenedIsAnError() throws {
        try Files.write("", to: path)
        #expect(throws: SystemError.self) { try open() }
        Files.remove(path)
        try Files.makeDirectory(path)
        #expect(symlink("/dev/null", file) == 0)
        #expect(throws: SystemError.self) { try open() }
        #expect(throws: SystemError.self) {
            try CollectionCatalog(
                directory: "\(path)/not/there", rules: rules, maximumBornByGlob: 1)
        }
    }

    // MARK: Limits

    @Test func globsCreateOnlySoManyCollections() throws {
        let collections = try CollectionRules([CollectionRule("named"), CollectionRule("*")])
        let catalog = try open(rules: collections, maximum: 2)
        #expect(catalog.admit(entry("a")) == nil)
        #expect(catalog.admit(entry("b")) == nil)
        let refusal = try #require(catalog.admit(entry("c")))
        #expect(refusal.code == .limitExceeded)
        #expect(refusal.details == CRUDError.Details(limit: "collections", maximum: 2))
        #expect(catalog.admit(entry("named")) == nil, "what a rule names is not counted")
        #expect(catalog.admit(entry("a")) == nil, "an entry that exists stays")
        #expect(catalog.admit(entry("a", backend: "other")) == nil)
        #expect(names(catalog) == ["a", "b", "named"])

        let again = try open(rules: collections, maximum: 2)
        #expect(again.admit(entry("c"))?.code == .limitExceeded)
        #expect(try open(rules: collections, maximum: 3).admit(entry("c")) == nil)
        let naming = try CollectionRules([CollectionRule("a"), CollectionRule("named"), CollectionRule("*")])
        #expect(try open(rules: naming, maximum: 3).admit(entry("d")) == nil)
    }

    /// A file that may not grow stands for a full disk: in the middle of a line, and at its beginning.
    @Test func lineThatDoesNotFitIsRemoved() async throws {
        await #expect(processExitsWith: .success) {
            signal(SIGXFSZ, SIG_IGN)
            let directory = try TemporaryDirectory()
            let rules = try CollectionRules([CollectionRule("*")])
            func entry(_ name: String) -> CollectionCatalog.Entry {
                .init(name: Array(name.utf8), place: CollectionPlace(backend: "main", format: .json))
            }
            func limit(_ bytes: UInt) -> Bool {
                let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
                var limit = rlimit()
                guard getrlimit(resource, &limit) == 0 else { return false }
                limit.rlim_cur = bytes
                return setrlimit(resource, &limit) == 0
            }
            let catalog = try CollectionCatalog(directory: directory.path, rules: rules, maximumBornByGlob: 9)
            #expect(catalog.admit(entry("a")) == nil)
            let size = try Files.read("\(directory.path)/collections.jsonl").count
            #expect(limit(UInt(size + 10)))
            #expect(catalog.admit(entry("b"))?.code == .noSpace)
            #expect(limit(UInt(size)))
            #expect(catalog.admit(entry("b"))?.isRetryable == true)
            #expect(catalog.entries == [entry("a")])
            #expect(limit(1 << 20))
            #expect(try Files.read("\(directory.path)/collections.jsonl").count == size)
            #expect(catalog.admit(entry("c")) == nil)
            let again = try CollectionCatalog(directory: directory.path, rules: rules, maximumBornByGlob: 9)
            #expect(Set(again.entries.map(\.name)) == [Array("a".utf8), Array("c".utf8)])
        }
    }
}
