import CRUDTestSupport
import Testing

/// Ids and collection names: every text of the right length without control characters, and nothing else.
@Suite(.daemon) struct NamingTests {
    private static let nasty = [
        "../../etc/passwd", "'; DROP TABLE clients; --", "\"; --", "a/b", "/", ".", "..", " ", "  ", "*", "?", "%", "_",
        "%00", "\\", "\\0", "\"", "'", "`", "[x]", "a\u{A0}b", "\u{FEFF}", "\u{200B}", "\u{202E}abc", "\u{80}",
        "\u{FFFF}", "\u{10FFFF}", "😀", "👩‍👩‍👧‍👦", "e\u{301}", "\u{E9}", "ß", "ẞ", "I", "i", "ı", "İ", "null", "true",
        "0", "-1", "0x10", "1e5", "NaN", "{}", "[]", "$(reboot)", "%s%n", "${HOME}", "a=b;c",
        "Robert'); DROP TABLE x;--",
    ]

    private static let names = [
        "Clients Database", "sqlite_master", "sqlite_sequence", "SQLITE_MASTER", "sqlite_stat1", "crudd_collections",
        "crudd_meta", "CRUDD_Collections", "table", "select", "index", "main.sqlite", "temp", "temp.x", "main.x",
        "rowid", "_rowid_", "sqlite_autoindex_x_1", "pragma_table_info", "pragma_index_list",
        "dbstat", "id",
    ]

    @Test func nastyIDsAreLikeAnyOther() throws {
        let connection = try Daemon.shared.connect()
        let ids = Self.nasty + [String(repeating: "😀", count: 128), String(repeating: "x", count: 512)]
        try roundTrip(
            ids, store: { try connection.create("nasty ids", $0, $1) }, read: { try connection.item("nasty ids", $0) })
        let result = try connection.readMany("nasty ids", ids).result
        let read = try #require(result?["records"]?.elements?.compactMap { $0["id"]?.string })
        #expect(read.map { Array($0.utf8) } == ids.map { Array($0.utf8) })
        for id in ids { #expect(try connection.delete("nasty ids", id).result?.text == "{}", "\(id)") }
    }

    @Test func nastyCollectionsAreLikeAnyOther() throws {
        let connection = try Daemon.shared.connect()
        let names = Self.nasty + Self.names + [String(repeating: "😀", count: 32), String(repeating: "x", count: 128)]
        try roundTrip(names, store: { try connection.create($0, "a", $1) }, read: { try connection.item($0, "a") })
        for name in names {
            let params = #"{"collection":\#(JSON.quote(name))}"#
            let result = try connection.call("collection.describe", params).result
            #expect(result?["count"]?.integer == 1, "\(name)")
            #expect(result?["name"]?.string.map { Array($0.utf8) } == Array(name.utf8))
        }
    }

    @Test func caseAndNormalisationKeepThingsApart() throws {
        let connection = try Daemon.shared.connect()
        let families = [
            ["name", "Name", "NAME"], ["\u{E9}", "e\u{301}"], ["\u{212B}", "\u{C5}", "A\u{30A}"], ["ß", "ss"],
        ]
        for family in families {
            for (number, name) in family.enumerated() {
                #expect(try connection.create("apart", name, "\(number)").result != nil)
                #expect(try connection.create("apart \(name)", "a", "\(number)").result != nil)
            }
            for (number, name) in family.enumerated() {
                #expect(try connection.item("apart", name) == "\(number)")
                #expect(try connection.item("apart \(name)", "a") == "\(number)")
            }
            #expect(try connection.delete("apart", family[0]).result != nil)
            #expect(try connection.exists("apart", family[1]) == true)
        }
    }

    @Test func nastyNamesSurviveARestart() throws {
        var daemon = try Daemon()
        let names = Self.nasty + Self.names
        var connection = try daemon.connect()
        for (number, name) in names.enumerated() {
            #expect(try connection.create(name, name, "\(number)").result != nil)
        }
        try daemon.stop()
        daemon = try daemon.restarted()
        connection = try daemon.connect()
        for (number, name) in names.enumerated() { #expect(try connection.item(name, name) == "\(number)", "\(name)") }
    }

    @Test func whatBreaksTheRuleIsRefused() throws {
        let connection = try Daemon.shared.connect()
        let control = ["\u{0}", "\u{1}", "a\u{0}b", "a\nb", "\t", "\r\n", "\u{1F}", "a\u{7F}", "\u{7F}"]
        let ids = control + ["", String(repeating: "x", count: 513), String(repeating: "😀", count: 128) + "x"]
        for id in ids {
            let replies = try [
                connection.create("refused", id, "1"), connection.update("refused", id, "1"),
                connection.upsert("refused", id, "1"), connection.read("refused", id),
                connection.delete("refused", id),
                connection.call("record.exists", Connection.params("refused", id)),
            ]
            for reply in replies {
                #expect(reply.error?.name == "invalid_params", "\(id.debugDescription)")
                #expect(reply.error?.details?["member"]?.string == "id")
            }
            #expect(try connection.readMany("refused", ["fine", id]).error?.details?["member"]?.string == "ids")
        }
        for name in control + ["", String(repeating: "x", count: 129), String(repeating: "😀", count: 32) + "x"] {
            let error = try connection.create(name, "a", "1").error
            #expect(error?.name == "invalid_params", "\(name.debugDescription)")
            #expect(error?.details?["member"]?.string == "collection")
            let params = #"{"collection":\#(JSON.quote(name))}"#
            #expect(try connection.call("collection.describe", params).error?.name == "invalid_params")
        }
    }

    @Test func anEscapedNameIsTheSameName() throws {
        let connection = try Daemon.shared.connect()
        #expect(try connection.create("same", "a/😀é", "1").result != nil)
        let params = #"{"collection":"s\u0061me","id":"\u0061\/\ud83d\ude00\u00e9"}"#
        #expect(try connection.call("record.read", params).result?["item"]?.text == "1")
    }

    /// Stores a number under each name first and reads them all afterwards, so that two names that fall together show.
    private func roundTrip(
        _ names: [String], store: (String, String) throws -> Reply, read: (String) throws -> String?
    ) throws {
        for (number, name) in names.enumerated() {
            #expect(try store(name, "\(number)").result != nil, "\(name.debugDescription)")
        }
        for (number, name) in names.enumerated() {
            #expect(try read(name) == "\(number)", "\(name.debugDescription)")
        }
    }
}
