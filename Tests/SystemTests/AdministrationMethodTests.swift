import CRUDTestSupport
import Testing

/// Methods about the daemon itself.
@Suite(.daemon) struct AdministrationMethodTests {
    @Test func pingRepliesWithAnEmptyObject() throws {
        let connection = try Daemon.shared.connect()
        #expect(try connection.call("daemon.ping").result?.text == "{}")
        #expect(try connection.call("daemon.ping", "{}").result?.text == "{}")
    }

    @Test func helloTellsProtocolAndLimits() throws {
        let connection = try Daemon.shared.connect()
        for params in [nil, "{}", #"{"client":"tests","protocol":1}"#, #"{"client":"😀"}"#] {
            let result = try #require(try connection.call("session.hello", params).result)
            #expect(result.members?.map(\.name).sorted() == ["daemon", "limits", "protocol", "version"])
            #expect(result["daemon"]?.string?.isEmpty == false)
            #expect(result["version"]?.string?.isEmpty == false)
            #expect(result["protocol"]?.integer == 1)
            let limits = result["limits"]
            #expect(limits?["frame_bytes"]?.integer == 16 << 20)
            #expect(limits?["item_bytes"]?.integer == 4 << 20)
            #expect(limits?["json_depth"]?.integer == 128)
            #expect(limits?["batch"]?.integer == 1000)
        }
    }

    @Test func backendListTellsWhatServes() throws {
        let connection = try Daemon.shared.connect()
        let result = try #require(try connection.call("backend.list").result)
        let backends = try #require(result["backends"]?.elements)
        #expect(backends.count == 1)
        #expect(
            backends.first?.members?.map(\.name).sorted() == [
                "bytes", "capabilities", "freeBytes", "isolation", "name", "path", "plugin", "state",
            ])
        #expect(backends.first?["name"]?.string == "main")
        #expect(backends.first?["plugin"]?.string == "sqlite")
        #expect(backends.first?["isolation"]?.string == "inline")
        #expect(backends.first?["state"]?.string?.isEmpty == false)
        #expect(backends.first?["state"]?.string != "down")
    }

    @Test func pluginListTellsWhatIsLoaded() throws {
        let daemon = try Daemon.shared
        let connection = try daemon.connect()
        let plugins = try #require(try connection.call("plugin.list").result?["plugins"]?.elements)
        #expect(plugins.count == 1)
        #expect(plugins.first?.members?.map(\.name).sorted() == ["abi", "name", "path", "version"])
        #expect(plugins.first?["name"]?.string == "sqlite")
        #expect(plugins.first?["abi"]?.integer == 2)
        #expect(plugins.first?["version"]?.string?.isEmpty == false)
        #expect(plugins.first?["path"]?.string == "\(daemon.installation.pluginDirectory)/sqlite.so")
    }

    @Test func statusTellsHowTheDaemonIs() throws {
        let daemon = try Daemon.shared
        let connection = try daemon.connect()
        let result = try #require(try connection.call("daemon.status").result)
        #expect(result["version"]?.string?.isEmpty == false)
        #expect(result["pid"]?.integer == Int(daemon.process.pid))
        #expect(result["uptimeSeconds"]?.text.hasPrefix("-") == false)
        #expect(result["sessions"] != nil)
        #expect(result["backends"] != nil)
    }

    /// The table of methods, with their parameters; those that may be left out have a ?.
    private static let methods: [String: [String]] = [
        "record.create": ["collection", "id", "item", "ttl?", "expiresAt?"],
        "record.read": ["collection", "id", "fields?"],
        "record.update": ["collection", "id", "item", "ifRevision?", "ttl?", "expiresAt?"],
        "record.delete": ["collection", "id", "ifRevision?"],
        "record.upsert": ["collection", "id", "item", "ifRevision?", "ttl?", "expiresAt?"],
        "record.exists": ["collection", "id"],
        "record.patch": [
            "collection", "id", "patch?", "increment?", "minimum?", "maximum?", "append?", "add?", "remove?",
            "ifRevision?", "upsert?", "ttl?", "expiresAt?",
        ],
        "record.touch": ["collection", "id", "ttl?", "expiresAt?", "ifRevision?"],
        "record.readMany": ["collection", "ids"],
        "record.query": [
            "collection", "filter?", "prefix?", "sort?", "limit?", "cursor?", "fields?", "explain?",
        ],
        "record.count": ["collection", "filter?", "prefix?"],
        "record.deleteMatching": ["collection", "filter?", "prefix?", "all?"],
        "record.batch": ["operations", "atomic?"], "collection.list": [],
        "collection.describe": ["collection", "sizes?"],
        "collection.changes": [
            "collection", "after?", "filter?", "prefix?", "fields?", "limit?", "wait?", "items?",
        ],
        "collection.drop": ["collection", "ifEmpty?", "moved?"], "collection.reindex": ["collection"],
        "backend.list": [], "backend.backup": ["backend", "directory"], "plugin.list": [],
        "session.hello": ["client?", "protocol?"], "daemon.ping": [],
        "daemon.status": [], "daemon.metrics": ["histograms?"], "daemon.slowLog": ["limit?"], "session.list": [],
        "session.close": ["session"], "daemon.reload": ["force?", "move?", "dryRun?"], "rpc.discover": [],
        "daemon.configuration": [], "daemon.logLevel": ["level"],
        "session.whoami": [], "request.cancel": ["id"], "access.check": ["method", "collection?", "user?"],
    ]

    @Test func discoverDescribesEveryMethod() throws {
        let connection = try Daemon.shared.connect()
        let document = try #require(try connection.call("rpc.discover").result)
        #expect(document["openrpc"]?.string?.hasPrefix("1.3.") == true)
        #expect(document["info"]?["title"]?.string != nil)
        #expect(document["info"]?["version"]?.string != nil)
        let described = try #require(document["methods"]?.elements)
        var methods: [String: [String]] = [:]
        for method in described {
            let params = try #require(method["params"]?.elements)
            methods[try #require(method["name"]?.string)] = try params.map { param in
                #expect(param["schema"] != nil, "OpenRPC: a content descriptor has a schema")
                let name = try #require(param["name"]?.string)
                return param["required"]?.boolean == true ? name : "\(name)?"
            }
            #expect(method["result"] != nil)
        }
        #expect(Set(methods.keys) == Set(Self.methods.keys) && methods.count == described.count)
        for (name, params) in Self.methods { #expect(methods[name]?.sorted() == params.sorted(), "\(name)") }
        for name in methods.keys {
            #expect(try connection.call(name, #"{"no such member":1}"#).error?.name == "invalid_params", "\(name)")
        }
    }

    @Test(arguments: ["record.frobnicate", "", "Record.read", "record.read ", "record", "rpc.describe", "😀"])
    func unknownMethodsAreNotFound(method: String) throws {
        let connection = try Daemon.shared.connect()
        for params in [nil, "{}", #"{"collection":"a","id":"b"}"#] {
            let error = try connection.call(method, params).error
            #expect(error?.code == -32601)
            #expect(error?.name == "method_not_found")
        }
    }
}
