import CRUDTestSupport
import Testing

/// `record.batch`.
@Suite(.daemon(Backends.configuration)) struct OperationsTests {
    /// One that waits for requests on all of its collections is executed when the last is done, and not tried before;
    /// so what it may not do is logged once.
    @Test(.enabled(if: Peer.canImpersonate, "needs root to connect as another user"))
    func aBatchThatWaitsIsExecutedOnce() throws {
        let configuration = Configuration(
            socket: #"mode: "0666""#, backends: "main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}",
            access: #"- {collections: ["open *"], allow: [read, write]}"#)
        let daemon = try Daemon(on: Installation(text: configuration.text + "log: {level: trace}\n"))
        let connection = try daemon.connect(as: Peer(user: 65534, group: 65534))
        let names = (0..<20).map { "open \($0)" }
        let creates = names.flatMap { name in
            (0..<20).map { ("record.create", Connection.params(name, "\($0)", item: "1")) }
        }
        #expect(try connection.pipeline(creates).allSatisfy { $0.result != nil })
        let operations = (names + ["closed"]).map { #"{"op":"create","collection":"\#($0)","id":"0","item":2}"# }
        let requests =
            names.map { ("record.deleteMatching", #"{"collection":"\#($0)","all":true}"#) }
            + [("record.batch", #"{"operations":[\#(operations.joined(separator: ","))]}"#)]
        let replies = try connection.pipeline(requests)
        let results = replies.last?.result?["results"]?.elements
        #expect(results?.dropLast().allSatisfy { $0["result"] != nil } == true, "it sees what was deleted before it")
        #expect(results?.last?["error"]?["data"]?["name"]?.string == "permission_denied")
        let lines = daemon.log.split(separator: "\n").filter { $0.contains("record.batch") }
        #expect(lines.count { $0.contains("is denied") } == 1, "\(lines)")
        #expect(lines.count { $0.hasSuffix("record.batch") } == 1, "it comes: \(lines)")
        #expect(lines.count { $0.hasSuffix("record.batch, which has waited") } == 1, "it is executed: \(lines)")
        #expect(Self.readings(daemon) == 1, "\(lines)")
    }

    private static func attempts(_ daemon: Daemon) -> Int {
        daemon.log.split(separator: "\n").count { $0.hasSuffix(": record.batch") }
    }

    /// How often the operations of a request have been read.
    private static func readings(_ daemon: Daemon) -> Int {
        daemon.log.split(separator: "\n").count { $0.hasSuffix(": the operations of a record.batch are read") }
    }

    /// An element of a batch array is tried whenever one of the requests before the array is done.
    @Test func theOperationsOfAnElementThatWaitsAreReadOnce() throws {
        let daemon = try Daemon(on: Installation(text: Configuration().text + "log: {level: trace}\n"))
        let connection = try daemon.connect()
        let names = (0..<20).map { "c\($0)" }
        let creates = names.flatMap { name in
            (0..<20).map { ("record.create", Connection.params(name, "\($0)", item: "1")) }
        }
        #expect(try connection.pipeline(creates).allSatisfy { $0.result != nil })
        let deletions = names.map {
            Connection.frame(
                Connection.request("record.deleteMatching", #"{"collection":"\#($0)","all":true}"#, id: "1"))
        }
        let operations = names.map { #"{"op":"create","collection":"\#($0)","id":"0","item":2}"# }
        let batch = Connection.request(
            "record.batch", #"{"operations":[\#(operations.joined(separator: ","))]}"#, id: "2")
        try connection.send(Array(deletions.joined()) + Connection.frame("[\(batch)]"))
        for _ in names { #expect(try connection.receive().result?["deleted"]?.integer == 20) }
        let results = try connection.receiveBatch().first?.result?["results"]?.elements
        #expect(results?.count == 20 && results?.allSatisfy { $0["result"] != nil } == true)
        #expect(Self.attempts(daemon) > 1, "it waits")
        #expect(Self.readings(daemon) == 1)
    }

    /// It waits until its session's replies have been read, since two patches may be answered with two large items.
    @Test func theOperationsOfABatchThatWaitsForRoomAreReadOnce() throws {
        let text = Configuration(limits: "session_bytes: 8MiB").text + "log: {level: trace}\n"
        let daemon = try Daemon(on: Installation(text: text))
        let connection = try daemon.connect()
        #expect(try connection.create("large", "a", "\"\(String(repeating: "x", count: 2 << 20))\"").result != nil)
        #expect(try connection.create("c", "a", "{}").result != nil)
        try connection.sendFrame(Connection.request("record.read", Connection.params("large", "a"), id: "1"))
        let deadline = Deadline()
        while try !connection.hasSomethingToRead() { try #require(!deadline.hasPassed) }
        let patch = #"{"op":"patch","collection":"c","id":"a","patch":{"x":1}}"#
        try connection.sendFrame(
            Connection.request("record.batch", #"{"operations":[\#(patch),\#(patch)]}"#, id: "2"))
        while Self.attempts(daemon) == 0 { try #require(!deadline.hasPassed) }
        #expect(try connection.receive().result?["item"] != nil)
        #expect(try connection.receive().result?["results"]?.elements?.count == 2)
        let lines = daemon.log.split(separator: "\n")
        #expect(lines.count { $0.hasSuffix(": record.batch, which has waited") } == 1, "it has waited")
        #expect(Self.readings(daemon) == 1)
    }

    // MARK: One after the other

    @Test(arguments: Backends.collections)
    func runInOrderAndSeeEachOther(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let c = "\(backend)/see"
        let results = try #require(
            try connection.batch(
                [
                    .init("create", c, "a", ["item": #"{"x":1}"#]), .init("create", c, "a", ["item": "2"]),
                    .init("patch", c, "a", ["patch": #"{"y":2}"#]), .init("update", c, "b", ["item": "3"]),
                    .init("upsert", c, "b", ["item": "3"]), .init("upsert", c, "b", ["item": "4"]),
                    .init("delete", c, "b"), .init("delete", c, "b"), .init("check", c, "b", ["ifRevision": "null"]),
                    .init("check", c, "a", ["ifRevision": "null"]), .init("check", c, "a", ["ifRevision": #""x""#]),
                    .init("check", c, "b", ["ifRevision": #""x""#]),
                    .init("patch", c, "b", ["patch": #"{"z":1}"#, "upsert": "true"]),
                ]
            ).results)
        let revision = try #require(results[2]["result"]?["revision"]?.text)
        #expect(results[0]["result"]?["revision"] != nil)
        #expect(results[1].errorName == "record_exists")
        #expect(results[2]["result"]?["item"]?.text == #"{"x":1,"y":2}"#)
        #expect(results[3].errorName == "record_not_found")
        #expect(results[4]["result"]?["created"]?.boolean == true)
        #expect(results[5]["result"]?["created"]?.boolean == false)
        #expect(results[6]["result"]?.text == "{}")
        #expect(results[7].errorName == "record_not_found")
        #expect(results[8]["result"]?.text == "{}")
        for index in 9...10 {
            #expect(results[index].errorName == "revision_mismatch")
            #expect(results[index]["error"]?["data"]?["details"]?["revision"]?.text == revision)
        }
        #expect(results[11].errorName == "record_not_found")
        #expect(results[12]["result"]?["item"]?.text == #"{"z":1}"#)
        #expect(results.count == 13)
        #expect(try connection.item(c, "a") == #"{"x":1,"y":2}"#)
        #expect(try connection.read(c, "a").result?["revision"]?.text == revision)
    }

    /// Where there is no collection there is no record.
    @Test(arguments: Backends.collections, [false, true])
    func checksForAbsenceInACollectionThatIsNotThere(backend: String, isAtomic: Bool) throws {
        guard !isAtomic || ["main", "memory"].contains(backend) else { return }
        let connection = try Daemon.shared.connect()
        let check = Operation("check", "\(backend)/not there \(isAtomic)", "a", ["ifRevision": "null"])
        for _ in 0..<2 {
            let reply = try connection.batch([check], isAtomic: isAtomic)
            #expect(reply.results?.first?["result"]?.text == "{}", "\(reply)")
        }
    }

    @Test func reachesSeveralBackends() throws {
        let connection = try Daemon.shared.connect()
        let names = ["main/several", "memory/several", "files/several", "nowhere"]
        let operations = (0..<40).map { Operation("create", names[$0 % 4], "\($0 / 8)", ["item": "\($0)"]) }
        let results = try #require(try connection.batch(operations).results)
        for (index, result) in results.enumerated() {
            let isSecond = index / 4 % 2 == 1
            switch index % 4 {
            case 3: #expect(result.errorName == "collection_not_found")
            default: #expect(result.errorName == (isSecond ? "record_exists" : nil))
            }
        }
        for name in names.dropLast() {
            #expect(try connection.readMany(name, (0..<5).map(String.init)).result?["records"]?.elements?.count == 5)
        }
    }

    /// Requests before and behind a batch on its collections keep their places, on each of them.
    @Test func keepsItsPlace() throws {
        let connection = try Daemon.shared.connect()
        var requests: [(String, String)] = []
        let names = ["files/place", "main/place", "memory/place"]
        for number in 0..<30 {
            for name in names { requests.append(("record.read", Connection.params(name, "a"))) }
            let operations = names.map { Operation("upsert", $0, "a", ["item": "\(number)"]).text }
            requests.append(("record.batch", #"{"operations":[\#(operations.joined(separator: ","))]}"#))
            for name in names { requests.append(("record.read", Connection.params(name, "a"))) }
        }
        let replies = try connection.pipeline(requests)
        for number in 0..<30 {
            for index in 0..<3 {
                #expect(replies[number * 7 + 4 + index].result?["item"]?.integer == number)
                if number > 0 { #expect(replies[number * 7 + index].result?["item"]?.integer == number - 1) }
            }
        }
    }

    @Test func worksInABatchArrayAndAsANotification() throws {
        let connection = try Daemon.shared.connect()
        let across =
            #"{"operations":[\#(Operation("create", "main/array", "a", ["item": "1"]).text),"#
            + #"\#(Operation("create", "memory/array", "a", ["item": "1"]).text)]}"#
        let read = Connection.params("memory/array", "a")
        try connection.sendFrame(
            "[\(Connection.request("record.batch", across, id: "1")),"
                + "\(Connection.request("record.read", read, id: "2")),"
                + "\(Connection.request("record.batch", across, id: "3"))]")
        let replies = try connection.receiveBatch()
        #expect(replies.map(\.id.text) == ["1", "2", "3"])
        #expect(replies[1].result?["item"]?.text == "1")
        #expect(replies[2].results?.map(\.errorName) == ["record_exists", "record_exists"])
        try connection.sendFrame(
            Connection.notification(
                "record.batch", #"{"operations":[\#(Operation("delete", "memory/array", "a").text)]}"#))
        #expect(try connection.item("memory/array", "a") == nil)
    }

    @Test func ofNothingRepliesNothing() throws {
        let connection = try Daemon.shared.connect()
        for atomic in ["true", "false"] {
            let reply = try connection.call("record.batch", #"{"operations":[],"atomic":\#(atomic)}"#)
            #expect(reply.result?.text == #"{"results":[]}"#)
        }
    }

    // MARK: Errors

    @Test(arguments: [
        ("1", "operations"), ("{}", "op"), (#"{"op":"read","collection":"main/x","id":"a"}"#, "op"),
        (#"{"op":1,"collection":"main/x","id":"a"}"#, "op"),
        (#"{"op":"create","collection":"main/x","id":"a"}"#, "item"),
        (#"{"op":"create","collection":"main/x","id":"a","item":1,"ifRevision":"x"}"#, "ifRevision"),
        (#"{"op":"create","collection":"main/x","item":1}"#, "id"),
        (#"{"op":"create","id":"a","item":1}"#, "collection"),
        (#"{"op":"create","collection":"","id":"a","item":1}"#, "collection"),
        (#"{"op":"create","collection":"main/x","id":"","item":1}"#, "id"),
        (#"{"op":"create","collection":"main/x","id":7,"item":1}"#, "id"),
        (#"{"op":"update","collection":"main/x","id":"a","item":1,"patch":1}"#, "patch"),
        (#"{"op":"update","collection":"main/x","id":"a","item":1,"ifRevision":null}"#, "ifRevision"),
        (#"{"op":"delete","collection":"main/x","id":"a","item":1}"#, "item"),
        (#"{"op":"patch","collection":"main/x","id":"a","patch":1,"upsert":1}"#, "upsert"),
        (#"{"op":"check","collection":"main/x","id":"a"}"#, "ifRevision"),
        (#"{"op":"check","collection":"main/x","id":"a","ifRevision":1}"#, "ifRevision"),
        (#"{"op":"create","collection":"main/x","id":"a","item":1,"id":"b"}"#, "operations"),
        (#"{"op":"create","op":"create","collection":"main/x","id":"a","item":1}"#, "operations"),
    ])
    func aMalformedOneFailsTheCall(operation: String, member: String) throws {
        let connection = try Daemon.shared.connect()
        let first = Operation("create", "main/malformed", member + operation.prefix(400), ["item": "1"])
        for atomic in ["true", "false"] {
            let error = try connection.call(
                "record.batch", #"{"operations":[\#(first.text),\#(operation)],"atomic":\#(atomic)}"#
            ).error
            #expect(error?.name == "invalid_params")
            #expect(error?.details?["index"]?.integer == 1)
            #expect(error?.details?["member"]?.string == member)
        }
        #expect(try connection.exists("main/malformed", member + operation.prefix(400)) == false)
    }

    @Test(arguments: [
        "{}", #"{"operations":1}"#, #"{"operations":[],"atomic":1}"#, #"{"operations":[],"collection":"c"}"#,
    ])
    func parametersAreChecked(params: String) throws {
        #expect(try Daemon.shared.connect().call("record.batch", params).error?.name == "invalid_params")
    }

    @Test func isBounded() throws {
        let connection = try Daemon.shared.connect()
        let many = Array(repeating: Operation("delete", "main/many", "a"), count: 1001)
        let error = try connection.batch(many).error
        #expect(error?.name == "limit_exceeded")
        #expect(error?.details?["limit"]?.string == "batch")
        #expect(try connection.batch(Array(many.dropFirst())).results?.count == 1000)
    }

    // MARK: Atomic requests

    private static let transactional = Backends.collections.filter { $0 != "files" }

    @Test(arguments: Self.transactional)
    func takesEffectWholeOrNotAtAll(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let (c, d) = ("\(backend)/whole", "\(backend)/whole too")
        let revision = try #require(try connection.create(c, "kept", #"{"n":1}"#).result?["revision"]?.text)
        let good: [Operation] = [
            .init("create", c, "a", ["item": #"{"x":1}"#]), .init("patch", c, "a", ["patch": #"{"y":2}"#]),
            .init("patch", d, "b", ["patch": #"{"z":3}"#, "upsert": "true"]),
            .init("check", c, "kept", ["ifRevision": revision]), .init("check", d, "c", ["ifRevision": "null"]),
            .init("patch", c, "kept", ["patch": #"{"n":2}"#, "ifRevision": revision]),
            .init("upsert", d, "d", ["item": "4"]), .init("delete", d, "d"),
            .init("patch", d, "d", ["patch": "5", "upsert": "true"]),
        ]
        let bad: [(Operation, String)] = [
            (.init("create", c, "kept", ["item": "1"]), "record_exists"),
            (.init("update", c, "none", ["item": "1"]), "record_not_found"),
            (.init("delete", d, "none"), "record_not_found"),
            (.init("update", c, "kept", ["item": "1", "ifRevision": #""x""#]), "revision_mismatch"),
            (.init("upsert", d, "none", ["item": "1", "ifRevision": #""x""#]), "revision_mismatch"),
            (.init("patch", c, "none", ["patch": "1"]), "record_not_found"),
            (.init("patch", c, "a", ["patch": "1", "ifRevision": #""x""#]), "revision_mismatch"),
            (.init("check", c, "kept", ["ifRevision": "null"]), "revision_mismatch"),
            (.init("check", c, "none", ["ifRevision": #""x""#]), "record_not_found"),
            (.init("create", "nowhere", "a", ["item": "1"]), "collection_not_found"),
        ]
        for (operation, name) in bad {
            for place in [0, 4, good.count] {
                var operations = good
                operations.insert(operation, at: place)
                let error = try connection.batch(operations, isAtomic: true).error
                if place == 0, operation.collection == c, operation.id == "a" { continue }
                #expect(error?.name == name, "\(operation.text) at \(place)")
                #expect(error?.details?["index"]?.integer == place)
                #expect(try connection.item(c, "kept") == #"{"n":1}"#)
                for id in ["a", "b", "d"] {
                    #expect(try connection.exists(c, id) == false)
                    #expect(try connection.exists(d, id) == false)
                }
            }
        }
        let results = try #require(try connection.batch(good, isAtomic: true).results)
        #expect(results.count == good.count)
        #expect(results.allSatisfy { $0["result"] != nil })
        #expect(results[1]["result"]?["item"]?.text == #"{"x":1,"y":2}"#)
        #expect(try connection.item(c, "a") == #"{"x":1,"y":2}"#)
        #expect(try connection.item(c, "kept") == #"{"n":2}"#)
        #expect(try connection.item(d, "b") == #"{"z":3}"#)
        #expect(try connection.item(d, "d") == "5")
        let read = try connection.read(c, "a").result?["revision"]?.text
        #expect(read == results[1]["result"]?["revision"]?.text)
    }

    /// The first failure is the one that is told, whoever finds it.
    @Test(arguments: Self.transactional)
    func tellsTheFirstFailure(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let c = "\(backend)/first"
        _ = try connection.create(c, "a", #"{"x":1}"#)
        let failing: [Operation] = [
            .init("create", c, "a", ["item": "1"]), .init("patch", c, "none", ["patch": "1"]),
            .init("check", c, "a", ["ifRevision": "null"]), .init("delete", c, "none"),
        ]
        let names = ["record_exists", "record_not_found", "revision_mismatch", "record_not_found"]
        for first in failing.indices {
            for second in failing.indices {
                let error = try connection.batch([failing[first], failing[second]], isAtomic: true).error
                #expect(error?.name == names[first])
                #expect(error?.details?["index"]?.integer == 0)
            }
        }
    }

    @Test func isUnsupportedWithoutTransactions() throws {
        let connection = try Daemon.shared.connect()
        let refused: [[Operation]] = [
            [.init("create", "files/none", "a", ["item": "1"])],
            [.init("create", "main/none", "a", ["item": "1"]), .init("create", "other/none", "a", ["item": "1"])],
            [.init("create", "main/none", "a", ["item": "1"]), .init("create", "files/none", "a", ["item": "1"])],
        ]
        for operations in refused {
            #expect(try connection.batch(operations, isAtomic: true).error?.name == "unsupported")
        }
        for name in ["files/none", "main/none", "other/none"] { #expect(try connection.exists(name, "a") == false) }
    }

    /// Transfers between accounts by many at once: the sum stays.
    @Test(arguments: Self.transactional)
    func isAtomicAgainstOthers(backend: String) async throws {
        let c = "\(backend)/accounts"
        let connection = try Daemon.shared.connect()
        for account in 0..<4 { _ = try connection.create(c, "\(account)", #"{"sum":100}"#) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                let connection = try Daemon.shared.connect()
                group.addTask { for _ in 0..<10 { try Self.transfer(in: c, connection) } }
            }
            try await group.waitForAll()
        }
        let records = try connection.readMany(c, ["0", "1", "2", "3"]).result?["records"]?.elements ?? []
        #expect(records.compactMap { $0["item"]?["sum"]?.integer }.reduce(0, +) == 400)
    }

    private static func transfer(in collection: String, _ connection: Connection) throws {
        while true {
            let from = Int.random(in: 0..<4)
            let to = (from + 1) % 4
            let records = try connection.readMany(collection, ["\(from)", "\(to)"]).result?["records"]?.elements ?? []
            let operations = try zip(records, [-1, 1]).map { record, change in
                guard let id = record["id"]?.string, let sum = record["item"]?["sum"]?.integer,
                    let revision = record["revision"]?.text
                else { throw Failure("no account") }
                return Operation(
                    "patch", collection, id, ["patch": #"{"sum":\#(sum + change)}"#, "ifRevision": revision])
            }
            let reply = try connection.batch(operations, isAtomic: true)
            if reply.result != nil { return }
            guard reply.error?.name == "revision_mismatch" else { throw Failure("\(reply)") }
        }
    }
}

/// An operation of `record.batch`; `more` is JSON text by member.
struct Operation {
    let collection: String
    let id: String
    let text: String

    init(_ op: String, _ collection: String, _ id: String, _ more: [String: String] = [:]) {
        self.collection = collection
        self.id = id
        text = Connection.params(collection, id, more: more.merging(["op": JSON.quote(op)]) { old, _ in old })
    }
}

extension Connection {
    func batch(_ operations: [Operation], isAtomic: Bool = false) throws -> Reply {
        let list = operations.map(\.text).joined(separator: ",")
        return try call("record.batch", #"{"operations":[\#(list)],"atomic":\#(isAtomic)}"#)
    }
}

extension Reply {
    /// The entries of a `record.batch`.
    var results: [JSON]? { result?["results"]?.elements }
}

extension JSON {
    /// The name of the error that an entry of a `record.batch` is.
    var errorName: String? { self["error"]?["data"]?["name"]?.string }
}
