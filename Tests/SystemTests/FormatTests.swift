import CRUDTestSupport
import Testing

/// Collections that are stored as property lists, on every backend that comes with the daemon.
@Suite struct FormatTests {
    private static let backends = ["sqlite", "filesystem", "memory", "postgresql"]

    private static let configuration = Configuration(
        backends: """
            sqlite: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            filesystem: {plugin: filesystem, options: {directory: $DIRECTORY/files}}
            memory: {plugin: memory}
            postgresql: {plugin: postgresql, options: \(PostgreSQLServer.options("main"))}
            """,
        collections: backends.flatMap { backend in
            ["json", "xml", "plist"].map { "\(backend)-\($0): {backend: \(backend), format: \($0)}" }
        }.joined(separator: "\n"))

    @Test(arguments: backends, ["xml", "plist"])
    func itemsComeBackEqual(backend: String, format: String) throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        let collection = "\(backend)-\(format)"
        let first = #"{"name":"Ada & <Co>","age":36,"score":0.5,"tags":["é","😀",""],"":{"ok":true,"none":[]}}"#
        #expect(try connection.create(collection, "a", first).result != nil)
        #expect(try connection.item(collection, "a") == first)
        #expect(try connection.create(collection, "a", "1").error?.name == "record_exists")
        #expect(try connection.update(collection, "a", #"["\u0041", 1e2]"#).result != nil)
        #expect(try connection.item(collection, "a") == #"["A",100.0]"#)
        #expect(try connection.upsert(collection, "a", first).result?["created"]?.boolean == false)
        let fields = try connection.read(collection, "a", fields: #"["age","tags"]"#)
        #expect(fields.result?["item"]?.text == #"{"age":36,"tags":["é","😀",""]}"#)
        #expect(try connection.upsert(collection, "b", "true").result?["created"]?.boolean == true)
        let many = try #require(try connection.readMany(collection, ["b", "c", "a"]).result)
        #expect(many["records"]?.elements?.map { $0["item"]?.text } == ["true", first])
        #expect(many["missing"]?.text == #"["c"]"#)
        #expect(try connection.delete(collection, "a").result != nil)
        #expect(try connection.exists(collection, "a") == false)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    @Test(arguments: backends, ["xml", "plist"])
    func whatWouldBeLostIsRefused(backend: String, format: String) throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        let collection = "\(backend)-\(format)"
        #expect(try connection.create(collection, "a", "1").result != nil)
        let items = [
            ("null", ""), (#"{"a":[1,{"b.c":null}]}"#, #"a[1].b\.c"#), ("[0.10]", "[0]"), (#"{"n":1e400}"#, "n"),
            (#"{"n":123456789012345678901234567890}"#, "n"),
        ]
        for (item, path) in items {
            for method in ["record.create", "record.update", "record.upsert"] {
                let id = method == "record.create" ? "b" : "a"
                let error = try connection.call(method, Connection.params(collection, id, item: item)).error
                #expect(error?.name == "unsupported", "\(method) \(item)")
                #expect(error?.details?["path"]?.string == path, "\(method) \(item)")
            }
        }
        #expect(try connection.item(collection, "a") == "1")
        #expect(try connection.exists(collection, "b") == false)
        let control = try connection.upsert(collection, "c", #"{"text":"\u0001"}"#)
        if format == "xml" { #expect(control.error?.details?["path"]?.string == "text") }
        #expect((control.error?.name == "unsupported") == (format == "xml"))
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    @Test func nothingOfABatchIsLostToARefusal() throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        let replies = try connection.pipeline([
            ("record.create", Connection.params("sqlite-xml", "a", item: "1")),
            ("record.create", Connection.params("sqlite-xml", "b", item: "null")),
            ("record.create", Connection.params("sqlite-plist", "c", item: "2")),
            ("record.read", Connection.params("sqlite-xml", "a")),
        ])
        #expect(replies.map { $0.error?.name } == [nil, "unsupported", nil, nil])
        #expect(replies[3].result?["item"]?.text == "1")
    }

    /// The corpus, whole: what is accepted comes back, after a restart as well.
    @Test(arguments: ["sqlite", "filesystem", "postgresql"], ["xml", "plist"])
    func corpusSurvivesARestart(backend: String, format: String) throws {
        var daemon = try Daemon(Self.configuration)
        var connection = try daemon.connect()
        let collection = "\(backend)-\(format)"
        var kept: [Int: String] = [:]
        for (number, text) in JSONCorpus.valid.enumerated() {
            let reply = try connection.upsert(collection, "\(number)", text)
            if reply.result != nil {
                kept[number] = try connection.item(collection, "\(number)")
            } else {
                #expect(reply.error?.name == "unsupported", "\(text.prefix(60))")
            }
        }
        #expect(kept.count > 80)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
        daemon = try daemon.restarted()
        connection = try daemon.connect()
        for (number, item) in kept { #expect(try connection.item(collection, "\(number)") == item) }
    }

    // MARK: Other tools

    private func python(_ program: String, _ arguments: String...) throws -> String {
        let outcome = try Command.run("/usr/bin/env", ["python3", "-c", program] + arguments)
        try #require(outcome.status == .exited(0), "\(outcome.errors)")
        return outcome.output
    }

    @Test(arguments: ["xml", "plist"])
    func filesAreReadAndWrittenByPlistlib(format: String) throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        let item = #"{"name":"é😀","numbers":[1,-1,18446744073709551615,0.5],"nested":{"a":{}}}"#
        #expect(try connection.create("filesystem-\(format)", "a", item).result != nil)
        let file = "\(daemon.installation.path)/files/filesystem-\(format)/item_a.\(format)"
        let load = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))"
        #expect(try JSON(parsing: python(load, file)).means(JSON(parsing: item)))
        let change = """
            import plistlib, sys
            item = plistlib.load(open(sys.argv[1], "rb"))
            item["name"] = "changed"
            kind = plistlib.FMT_XML if sys.argv[2] == "xml" else plistlib.FMT_BINARY
            plistlib.dump(item, open(sys.argv[1], "wb"), fmt=kind, sort_keys=False)
            """
        _ = try python(change, file, format)
        let changed = try #require(try connection.item("filesystem-\(format)", "a"))
        #expect(changed == #"{"name":"changed","numbers":[1,-1,18446744073709551615,0.5],"nested":{"a":{}}}"#)
    }

    @Test func rowsAreReadBySQLiteAndPlistlib() throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        let item = #"{"name":"é😀","numbers":[1,0.5]}"#
        for format in ["xml", "plist"] { #expect(try connection.create("sqlite-\(format)", "a", item).result != nil) }
        let program = """
            import json, plistlib, sqlite3, sys
            rows = sqlite3.connect(sys.argv[1])
            for format in ["xml", "plist"]:
                kind, item = rows.execute(f'SELECT typeof(item), item FROM "sqlite-{format}" WHERE id = "a"').fetchone()
                print(kind)
                print(json.dumps(plistlib.loads(item.encode() if isinstance(item, str) else item)))
            """
        let lines = try python(program, "\(daemon.installation.path)/main.sqlite").split(separator: "\n")
        try #require(lines.count == 4)
        #expect([lines[0], lines[2]] == ["text", "blob"])
        for line in [lines[1], lines[3]] { #expect(try JSON(parsing: String(line)).means(JSON(parsing: item))) }
    }

    @Test(arguments: ["json", "xml", "plist"])
    func whatCannotBeDecodedIsCorrupt(format: String) throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        let collection = "filesystem-\(format)"
        for id in ["a", "b"] { #expect(try connection.create(collection, id, "1").result != nil) }
        let file = "\(daemon.installation.path)/files/\(collection)/item_a.\(format)"
        let date = "import datetime, plistlib, sys; plistlib.dump(datetime.datetime.now(), open(sys.argv[1], 'wb'))"
        for content in ["", "garbage", "bplist00", "<plist><string>", "[1,]", "<plist><data/></plist>"] {
            try Files.write(content, to: file)
            #expect(try connection.read(collection, "a").error?.name == "corrupt", "\(content)")
            let many = try connection.readMany(collection, ["a", "b"]).result
            #expect(many?["records"]?.elements?.compactMap { $0["id"]?.string } == ["b"], "\(content)")
            #expect(many?["missing"]?.text == "[]" && many?["corrupt"]?.text == #"["a"]"#, "\(content)")
            #expect(try connection.item(collection, "b") == "1")
        }
        _ = try python(date, file)
        #expect(try connection.read(collection, "a").error?.name == "corrupt")
        #expect(try connection.update(collection, "a", "2").result != nil)
        #expect(try connection.item(collection, "a") == "2")
    }
}
