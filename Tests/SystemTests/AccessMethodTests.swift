import CRUDTestSupport
import Testing

/// `session.whoami` and `access.check`, and what crudctl makes of them. Peers of other users are real.
@Suite(.enabled(if: Peer.canImpersonate, "needs root to connect as other users")) struct AccessMethodTests {
    private static let nobody = Peer(user: 65534, group: 65534, supplementaryGroups: [60001])

    private static let rules = """
        - {users: [65534], collections: [secret], allow: []}
        - {groups: [60001], collections: [open, "s*"], allow: [read]}
        - {users: [1], allow: [read, write]}
        """

    private func daemon(_ rules: String? = Self.rules) throws -> Daemon {
        try Daemon(Configuration(socket: #"mode: "0666""#, access: rules))
    }

    @Test func whoamiTellsWhatTheRulesAllow() throws {
        let daemon = try daemon()
        let caller = try #require(try daemon.connect(as: Self.nobody).call("session.whoami").result)
        #expect(
            caller.text
                == #"{"session":1,"uid":65534,"groups":[60001,65534],"#
                + #""access":[{"collections":["open","s*"],"allow":["read"]}]}"#)
        let root = try daemon.connect().call("session.whoami").result
        #expect(root?["access"]?.text == #"[{"allow":["read","write","admin"]}]"#)
        let stranger = try daemon.connect(as: Peer(user: 60002, group: 60002)).call("session.whoami").result
        #expect(stranger?["access"]?.text == "[]")
    }

    /// What it says is what the method does.
    @Test func checkTellsWhatAMethodDoes() throws {
        let daemon = try daemon()
        let peer = try daemon.connect(as: Self.nobody)
        for collection in ["open", "shelf", "secret", "other"] {
            for method in ["record.read", "record.delete", "collection.describe", "record.deleteMatching"] {
                let params = #"{"method":"\#(method)","collection":"\#(collection)"}"#
                let answer = try #require(try peer.call("access.check", params).result)
                let call = try peer.call(method, Self.params(method, collection))
                #expect(
                    answer["allowed"]?.boolean == (call.error?.name != "permission_denied"), "\(method) \(collection)")
            }
        }
        let denied = try peer.call("access.check", #"{"method":"record.patch","collection":"open"}"#).result
        #expect(denied?.text == #"{"allowed":false,"uid":65534,"requires":["read","write"],"has":["read"]}"#)
        let admin = try peer.call("access.check", #"{"method":"daemon.reload"}"#).result
        #expect(admin?.text == #"{"allowed":false,"uid":65534,"requires":["admin"],"has":[]}"#)
        #expect(try peer.call("access.check", #"{"method":"daemon.ping"}"#).result?["allowed"]?.boolean == true)
    }

    private static func params(_ method: String, _ collection: String) -> String {
        switch method {
        case "collection.describe": #"{"collection":"\#(collection)"}"#
        case "record.deleteMatching": #"{"collection":"\#(collection)","prefix":"a"}"#
        default: Connection.params(collection, "a")
        }
    }

    @Test func administratorsAskForOthers() throws {
        let daemon = try daemon()
        let root = try daemon.connect()
        func ask(_ user: String, _ collection: String) throws -> Reply {
            try root.call("access.check", #"{"method":"record.read","collection":"\#(collection)","user":"\#(user)"}"#)
        }
        // Of this machine's databases: user 65534 is in no group 60001.
        for user in ["nobody", "65534"] {
            #expect(try ask(user, "open").result?["allowed"]?.boolean == false)
            #expect(try ask(user, "open").result?["uid"]?.integer == 65534)
        }
        #expect(try ask("daemon", "open").result?["allowed"]?.boolean == true)
        #expect(try ask("root", "open").result?["has"]?.text == #"["read","write","admin"]"#)
        for user in ["no such user", "", "4294967295", "99999999999"] {
            let error = try ask(user, "open").error
            #expect(error?.name == "invalid_params" && error?.details?["member"]?.string == "user", "\(user)")
        }
        let peer = try daemon.connect(as: Self.nobody)
        let other = #"{"method":"record.read","collection":"open","user":"daemon"}"#
        #expect(try peer.call("access.check", other).error?.name == "permission_denied")
    }

    @Test(arguments: [
        (#"{"method":"record.frobnicate","collection":"c"}"#, "method"), (#"{"method":"record.batch"}"#, "method"),
        (#"{"method":"record.read"}"#, "collection"), (#"{"method":"daemon.ping","collection":"c"}"#, "collection"),
        (#"{"method":1}"#, "method"), ("{}", "method"), (#"{"method":"record.read","collection":""}"#, "collection"),
    ])
    func parametersAreChecked(params: String, member: String) throws {
        let error = try daemon(nil).connect().call("access.check", params).error
        #expect(error?.name == "invalid_params" && error?.details?["member"]?.string == member, "\(params)")
    }

    // MARK: crudctl

    private func crudctl(_ daemon: Daemon, as peer: Peer? = nil, _ words: String...) throws -> Command.Outcome {
        let program = try BuildProducts.path(of: "crudctl")
        let environment = ["CRUDD_SOCKET": daemon.socketPath]
        guard let peer else { return try Command.run(program, words, environment: environment) }
        return try Command.run(
            peer.command.path, peer.command.arguments + [program] + words, environment: environment)
    }

    @Test func crudctlTellsWhoYouAre() throws {
        let daemon = try daemon()
        let outcome = try crudctl(daemon, as: Self.nobody, "whoami", "-o", "table")
        #expect(
            outcome.output == """
                you      user nobody (65534)
                groups   60001, nogroup (65534)
                session  1
                may      read: open, s*

                """, "\(outcome.errors)")
        let json = try crudctl(daemon, as: Self.nobody, "whoami")
        #expect(try JSON(parsing: json.output)["uid"]?.integer == 65534)
    }

    @Test func crudctlTellsWhoMayDoWhat() throws {
        let daemon = try daemon()
        let yes = try crudctl(daemon, "can", "daemon", "record.update", "c", "-o", "table")
        #expect(yes.output == "yes\n" && yes.status == .exited(0))
        let no = try crudctl(daemon, "can", "nobody", "collection.drop", "open", "-o", "table")
        #expect(no.output == "no: it needs admin, and user nobody (65534) has nothing\n" && no.status == .exited(77))
        let json = try crudctl(daemon, "can", "nobody", "daemon.reload")
        #expect(try JSON(parsing: json.output)["allowed"]?.boolean == false)
        #expect(json.status == .exited(77) && json.errors.isEmpty)
    }

    /// An empty list would look as if nothing had been stored.
    @Test(arguments: [["collections"], ["dump", "--all"]])
    func aUserWhoMayReadNothingIsToldSo(words: [String]) throws {
        let daemon = try daemon("- {users: [1], allow: [read]}\n- {allow: [write]}")
        #expect(try daemon.connect().create("c", "a", "1").result != nil)
        let program = try BuildProducts.path(of: "crudctl")
        let outcome = try Command.run(
            Self.nobody.command.path, Self.nobody.command.arguments + [program] + words,
            environment: ["CRUDD_SOCKET": daemon.socketPath])
        #expect(outcome.status == .exited(77) && outcome.output.isEmpty)
        #expect(outcome.errors.contains("let user nobody (65534) read no collection"), "\(outcome.errors)")
        let reader = try crudctl(daemon, as: Peer(user: 1, group: 1), "collections")
        #expect(reader.status == .exited(0) && reader.output.contains(#""name":"c""#))
    }
}
