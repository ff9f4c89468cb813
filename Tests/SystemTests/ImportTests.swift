import CRUDTestSupport
import Testing

/// `crudctl import` with a real daemon.
@Suite(.daemon) struct ImportTests: CrudctlSuite {
    private static func loaded(_ name: String, _ count: Int) -> String {
        #"{"loaded":[{"collection":"\#(name)","records":\#(count)}]}"# + "\n"
    }

    @Test func rowsBecomeRecords() throws {
        let daemon = try Daemon.shared.connect()
        let table = """
            \u{FEFF}id,name,age,score,active,tags,note
            a,"Ada ""the"" first, née\r
            Byron",36,1.50e+2,true,"[1, {""x"": null}]",
            é😀,,-7,-0.25,false,,""
            "../../etc/passwd",' OR 1=1,,,,"{}",  blanks \r
            """
        let run = try run(
            "import", "import types", "--id", "id", "--type", "age=integer", "--type", "score=number", "--type",
            "active=boolean", "--type", "tags=json", input: table)
        #expect(run.status == .exited(0), "\(run.errors)")
        #expect(run.output == Self.loaded("import types", 3))
        let expected = [
            (
                "a",
                #"{"name":"Ada \"the\" first, née\r\nByron","age":36,"score":1.50e+2,"active":true,"#
                    + #""tags":[1, {"x": null}]}"#
            ),
            ("é😀", #"{"age":-7,"score":-0.25,"active":false,"note":""}"#),
            ("../../etc/passwd", #"{"name":"' OR 1=1","tags":{},"note":"  blanks "}"#),
        ]
        for (id, item) in expected {
            let stored = try daemon.item("import types", id)
            #expect(stored == item)
        }
    }

    @Test func idsSeparatorsAndRecordsThatExist() throws {
        let daemon = try Daemon.shared.connect()
        #expect(try daemon.create("import again", "2", "1").result != nil)
        let table = "n;v\n1;x\n2;y\n"
        let arguments = ["import", "import again", "--id", "n", "--separator", ";", "--keep-id"]
        let refused = try run(arguments: arguments, input: table)
        #expect(refused.status == .exited(73))
        #expect(refused.errors.contains("row 3") && refused.errors.contains("nothing was written"), "\(refused.errors)")
        #expect(try daemon.read("import again", "1").error?.name == "record_not_found", "a batch is atomic")
        let replaced = try run(arguments: arguments + ["--upsert"], input: table)
        #expect(replaced.output == Self.loaded("import again", 2), "\(replaced.errors)")
        #expect(try daemon.item("import again", "2") == #"{"n":"2","v":"y"}"#)
        let tabs = try run("import", "import tabs", "--id", "b", "--separator", "tab", input: "a\tb\n1,2\tx")
        #expect(tabs.output == Self.loaded("import tabs", 1), "\(tabs.errors)")
        #expect(try daemon.item("import tabs", "x") == #"{"a":"1,2"}"#)
    }

    @Test(arguments: [
        ("id,n\na,1\nb,x\n", #"row 3, column "n": "x" is not an integer"#),
        ("id,n\na,1.0\n", #"row 2, column "n": "1.0" is not an integer"#),
        ("id,n\na,01\n", "is not an integer"), ("id,n\na,+1\n", "is not an integer"),
        ("id,n\na, 1\n", "is not an integer"), ("id,n\na,\"\"\n", "is not an integer"),
        ("id,n\na\n", "row 2: there are 1 fields, and 2 columns"), ("id,n\na,1\n\n", "row 3: there are 1 fields"),
        ("id,n\n,1\n", #"row 2, column "id": the id is empty"#),
        ("id,n\na,1\nb,2\na,3\n", #"row 4, column "id": the id "a" stands in an earlier row too"#),
        ("id,n\n\"a\"b,1\n", "row 2, field 1: something follows a closing quotation mark"),
        ("id,n\na\"b,1\n", "row 2, field 1: a quotation mark stands within a field"),
        ("id,n\n\"a,1\n", "row 2, field 1: a quotation mark is missing at the end"),
        ("id,id\n", #"row 1: two columns are called "id""#), ("id,\n", "row 1: column 2 has no name"),
        ("", "the table is empty"), ("name,n\na,1\n", #"the table has no column "id"; it has "name", "n""#),
        ("id,m\na,1\n", #"the table has no column "n""#),
    ])
    func namesRowAndColumnAndWritesNothing(_ table: String, _ reason: String) throws {
        let refused = try run("import", "import refused", "--id", "id", "--type", "n=integer", input: table)
        #expect(refused.status == .exited(65))
        #expect(refused.errors.contains(reason), "\(refused.errors)")
        #expect(refused.errors.contains("nothing was written"))
        #expect(refused.output.isEmpty)
        let count = try Daemon.shared.connect().call("record.count", #"{"collection":"import refused"}"#)
        #expect(count.result?["count"]?.text == "0")
    }

    @Test func textThatIsNotUTF8IsRefused() throws {
        let directory = try TemporaryDirectory()
        try Files.write(Array("id,n\na,".utf8) + [0xC3, 0x28, 10], to: "\(directory.path)/table.csv")
        let refused = try run("import", "import refused", "\(directory.path)/table.csv", "--id", "id")
        #expect(refused.status == .exited(65))
        #expect(refused.errors.contains(#"row 2, column "n": not valid UTF-8"#), "\(refused.errors)")
    }

    @Test func oneBadRowOfAHundredThousandWritesNothing() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/table.csv"
        var rows = (1...100_000).map { "\($0),name \($0),\($0 % 90)" }
        rows[98_764] = "98765,name,ninety"
        try Files.write("id,name,age\n" + rows.joined(separator: "\n"), to: path)
        let arguments = ["import", "import many", path, "--id", "id", "--type", "age=integer"]
        let refused = try run(arguments: arguments)
        #expect(refused.status == .exited(65))
        #expect(
            refused.errors.contains(#"row 98766, column "age": "ninety" is not an integer; nothing was written"#),
            "\(refused.errors)")
        let connection = try Daemon.shared.connect()
        let params = #"{"collection":"import many"}"#
        #expect(try connection.call("record.count", params).result?["count"]?.text == "0")
        rows[98_764] = "98765,name,90"
        try Files.write("id,name,age\n" + rows.joined(separator: "\n"), to: path)
        let imported = try run(arguments: arguments)
        #expect(imported.output == Self.loaded("import many", 100_000), "\(imported.errors)")
        #expect(try connection.call("record.count", params).result?["count"]?.text == "100000")
        #expect(try connection.item("import many", "98765") == #"{"name":"name","age":90}"#)
    }

    /// As the help says.
    @Test func aTableOfASQLiteFileIsImportedByItsOwnProgram() throws {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/foreign.sqlite"
        try SQLiteDatabase.execute(
            """
            CREATE TABLE people (n INTEGER PRIMARY KEY, name TEXT, age INTEGER);
            INSERT INTO people VALUES (1, 'Ada, "Countess"', 36), (2, '', NULL), (3, NULL, 7)
            """, in: file)
        let crudctl = try BuildProducts.path(of: "crudctl")
        let pipeline =
            #"sqlite3 -readonly -header -csv "$1" 'SELECT * FROM people' | "$0" import people --id n "#
            + "--type age=integer"
        let run = try Command.run(
            "/bin/sh", ["-c", pipeline, crudctl, file], environment: ["CRUDD_SOCKET": Daemon.shared.socketPath])
        #expect(run.output == Self.loaded("people", 3), "\(run.errors)")
        let daemon = try Daemon.shared.connect()
        #expect(try daemon.item("people", "1") == #"{"name":"Ada, \"Countess\"","age":36}"#)
        #expect(try daemon.item("people", "2") == #"{"name":""}"#)
        #expect(try daemon.item("people", "3") == #"{"age":7}"#)
    }

    @Test(arguments: [
        ["import", "c"], ["import", "c", "--id", "x", "--type", "n"], ["import", "c", "--id", "x", "--type", "n=date"],
        ["import", "c", "--id", "x", "--separator", ";;"], ["import", "", "--id", "x"],
        ["import", "c", "--id", "x", "--create", "--upsert"],
    ])
    func wrongUsage(_ arguments: [String]) throws {
        #expect(try run(arguments: arguments).status == .exited(64))
    }

    /// A table of a foreign SQLite file, by the program sqlite3.
    @Test func rowsOfASQLiteTable() throws {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/foreign.sqlite"
        let sql = """
            CREATE TABLE "a ""b" (k TEXT, n INTEGER, note TEXT);
            INSERT INTO "a ""b" VALUES ('x', 1, 'one, "two"'), ('y', NULL, ''), ('z', -3, NULL);
            CREATE TABLE bad (k TEXT, n); INSERT INTO bad VALUES ('x', 1), ('y', 'many');
            """
        #expect(try Command.run("sqlite3", [file, sql]).status == .exited(0))
        let before = try Files.read(file)
        let words = ["import", "import sqlite", file, "--id", "k", "--type", "n=integer", "--table"]
        let done = try run(arguments: words + ["a \"b"])
        #expect(done.output == Self.loaded("import sqlite", 3), "\(done.errors)")
        let daemon = try Daemon.shared.connect()
        #expect(try daemon.item("import sqlite", "x") == #"{"n":1,"note":"one, \"two\""}"#)
        #expect(try daemon.item("import sqlite", "y") == #"{"note":""}"#)
        #expect(try daemon.item("import sqlite", "z") == #"{"n":-3}"#)
        #expect(try Files.read(file) == before)

        let bad = try run(arguments: words + ["bad", "--upsert"])
        #expect(bad.status == .exited(65) && bad.errors.contains(#"row 3, column "n": "many" is not an integer"#))
        for (table, path) in [("none", file), ("bad", "\(directory.path)/none")] {
            let failed = try run("import", "import sqlite", path, "--id", "k", "--table", table)
            #expect(failed.status == .exited(65) && failed.errors.contains("sqlite3 cannot read table"))
            #expect(failed.output.isEmpty)
        }
        #expect(!Files.exists("\(directory.path)/none"))
        #expect(try run("import", "c", "--id", "k", "--table", "t").status == .exited(64))
        let count = try daemon.call("record.count", #"{"collection":"import sqlite"}"#).result?["count"]?.text
        #expect(count == "3")
    }
}
