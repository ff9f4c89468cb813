import CRUDTestSupport
import Testing

/// What does not go through the channel to a child, or not to this one.
@Suite struct ChildLimitTests {
    /// Records that no client could have stored, because somebody has put a file there: each fails by itself, and the
    /// child lives on.
    @Test(arguments: [("inline", "limit_exceeded"), ("process", "corrupt")])
    func aRecordThatFitsNoFrameFailsAlone(isolation: String, error: String) throws {
        let backends = """
            files: {plugin: filesystem, isolation: \(isolation), options: {directory: $DIRECTORY/files}}
            store: {command: [$DIRECTORY/store.py], options: {path: $DIRECTORY/store.db}}
            """
        let daemon = try Daemon(
            Configuration(
                backends: backends, collections: "\"*\": {backend: files}",
                limits: "frame_bytes: 64KiB\nitem_bytes: 32KiB"))
        let connection = try daemon.connect()
        for id in ["a", "z"] { #expect(try connection.create("c", id, #"{"id":"\#(id)"}"#).result != nil) }
        let pid = try ChildDaemon.status(of: "files", connection).pid
        let path = "\(daemon.installation.path)/files/c/item_"
        // Longer than a reply, though not than what a child may send; and longer than that, as JSON and not.
        try Files.write("\"" + String(repeating: "x", count: 256 << 10) + "\"", to: path + "long.json")
        try Files.write("\"" + String(repeating: "x", count: 20 << 20) + "\"", to: path + "longer.json")
        try Files.write(String(repeating: "x", count: 20 << 20), to: path + "noise.json")
        for _ in 0..<2 {
            #expect(try connection.read("c", "long").error?.name == "limit_exceeded")
            for id in ["longer", "noise"] { #expect(try connection.read("c", id).error?.name == error) }
            #expect(try connection.readMany("c", ["a", "longer", "z"]).error?.name == error)
            // What others ask for at the same time is not concerned.
            let replies = try connection.pipeline(
                ["a", "longer", "z", "noise", "a"].map { ("record.read", Connection.params("c", $0)) })
            #expect(replies.map { $0.error?.name } == [nil, error, nil, error, nil])
        }
        #expect(try connection.exists("c", "longer") == true)
        #expect(try connection.call("record.count", #"{"collection":"c"}"#).result?["count"]?.integer == 5)
        #expect(try connection.query("c", #"{"prefix":"longe"}"#).error?.name == "limit_exceeded")
        #expect(try connection.query("c", #"{"prefix":"z"}"#).result?["records"]?.elements?.count == 1)
        #expect(try connection.delete("c", "longer").result != nil)
        #expect(try connection.upsert("c", "noise", "1").result != nil)
        #expect(try connection.item("c", "noise") == "1")
        let status = try ChildDaemon.status(of: "files", connection)
        #expect(status.pid == pid && status.state == "ready", "\(status.json.text)")
        #expect((isolation == "process") == daemon.log.contains("record longer has 20971522 bytes"), "\(daemon.log)")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// What a child does not declare, or takes back as it opens, the daemon does itself or refuses; the child is not
    /// asked.
    @Test func aChildIsNotAskedForWhatItTakesBack() throws {
        let daemon = try ChildDaemon(["store", "unruly"], unruly: ", do: 'open:forgo'").daemon
        let connection = try daemon.connect()
        for collection in ["store", "unruly"] {
            let put = Operation("create", collection, "a", ["item": #"{"age":36}"#])
            let reply = try connection.batch([put], isAtomic: true)
            #expect(reply.error?.name == (collection == "unruly" ? "unsupported" : nil))
            #expect(try connection.exists(collection, "a") == (collection == "store"))
            #expect(try connection.upsert(collection, "b", #"{"age":37}"#).result != nil)
            let filter = #"{"op":">","args":[{"property":"age"},36]}"#
            let count = try connection.call("record.count", #"{"collection":"\#(collection)","filter":\#(filter)}"#)
            #expect(count.result?["count"]?.integer == 1)
            #expect(try ChildDaemon.status(of: collection, connection).restarts == 0)
        }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
