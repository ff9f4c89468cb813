import CRUDTestSupport
import Testing

/// The log, where standard error is systemd's journal.
@Suite struct JournalTests {
    /// Takes the place of the journal, in a mount namespace in which `/run` is empty; prints the entries that a daemon
    /// sends while it starts and is asked for a record, as lines of JSON.
    private static let journal = """
        import json, os, socket, struct, subprocess, sys
        crudd, configuration, path = sys.argv[1:]
        os.makedirs("/run/systemd/journal")
        journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        journal.bind("/run/systemd/journal/socket")
        journal.settimeout(60)
        status = os.fstat(2)
        daemon = subprocess.Popen(
            [crudd, "--config", configuration],
            env=dict(os.environ, JOURNAL_STREAM=f"{status.st_dev}:{status.st_ino}"))
        messages = []
        def entry():
            fields = dict(line.split("=", 1) for line in journal.recv(65536).decode().splitlines())
            print(json.dumps(fields), flush=True)
            messages.append(fields["MESSAGE"])
            return messages[-1]
        while "is ready" not in entry(): pass
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        def call(method, **params):
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params, "traceparent": trace}
            body = json.dumps(request).encode()
            client.sendall(struct.pack(">I", len(body)) + body)
            while f": {method}" not in entry(): pass
        call("record.read", collection="c d", id="a")
        call("record.upsert", collection="c d", id="a", item=1)
        call("session.hello", client="an administrator")
        call("record.deleteMatching", collection="c d", all=True)
        # The two entries of the deletion come in any order.
        while not any("1 record deleted" in message for message in messages): entry()
        daemon.terminate()
        sys.exit(daemon.wait())
        """

    @Test(.enabled(if: Peer.canImpersonate, "needs root for a mount namespace"))
    func entriesHaveFields() throws {
        let text = Configuration().text + "log: {slow: 1us}\n"
        let installation = try Installation(text: text)
        let outcome = try Command.run(
            "unshare",
            [
                "--mount", "sh", "-c", "mount -t tmpfs tmpfs /run && exec python3 -c \"$0\" \"$@\"", Self.journal,
                BuildProducts.path(of: "crudd"), installation.configurationFile, installation.socketPath,
            ])
        #expect(outcome.status == .exited(0), "\(outcome.errors)")
        #expect(outcome.errors.isEmpty, "nothing goes both ways")
        let entries = try outcome.output.split(separator: "\n").map { try JSON(parsing: String($0)) }
        let opened = entries.first { $0["MESSAGE"]?.string == "backend main is open" }
        #expect(opened?["CRUDD_BACKEND"]?.string == "main" && opened?["PRIORITY"]?.string == "6")
        let slow = try #require(entries.first { $0["CRUDD_METHOD"]?.string == "record.read" })
        #expect(slow["MESSAGE"]?.string?.contains("record.read on collection \"c d\" took") == true)
        #expect(slow["CRUDD_METHOD"]?.string == "record.read" && slow["CRUDD_COLLECTION"]?.string == "c d")
        #expect(slow["CRUDD_UID"]?.string == "0" && slow["CRUDD_SESSION"]?.string == "1")
        #expect(slow["SYSLOG_IDENTIFIER"]?.string == "crudd" && slow["PRIORITY"]?.string == "5")
        let deletion = try #require(entries.first { $0["CRUDD_OUTCOME"] != nil })
        let fields = [
            "METHOD": "record.deleteMatching", "COLLECTION": "c d", "RECORDS": "1", "UID": "0", "USER": "root",
            "SESSION": "1", "CLIENT": "an administrator", "OUTCOME": "ok",
            "TRACE_ID": "4bf92f3577b34da6a3ce929d0e0e4736", "SPAN_ID": "00f067aa0ba902b7",
        ]
        for (name, value) in fields { #expect(deletion["CRUDD_\(name)"]?.string == value, "\(name)") }
        #expect(deletion["PRIORITY"]?.string == "5")
        #expect(deletion["MESSAGE"]?.string?.hasSuffix(", trace 4bf92f3577b34da6a3ce929d0e0e4736") == true)
        #expect(slow["CRUDD_TRACE_ID"]?.string == "4bf92f3577b34da6a3ce929d0e0e4736")
        #expect(opened?["CRUDD_TRACE_ID"] == nil)
    }
}
