import CRUDPluginABI
import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDPluginHost

/// Children that break the protocol are killed, and what they say unasked is heard.
@Suite struct ChildFaultTests {
    typealias Change = TestChild.Change

    /// What the child does, and words of what the administrator reads.
    static let acts = [
        ("die", "ended with status 3"), ("die afterwards", "ended with status 3"),
        ("hang", "did not reply to"), ("half", "did not reply to"), ("close", "closed its channel"),
        ("line", "a frame of"), ("binary", "a head of"), ("text", "not valid JSON"),
        ("twice", "which is not open"), ("other id", "a reply to request"), ("both", "result and error"),
        ("odd status", "an unknown status"), ("few", "protocol"), ("short", "bytes of a payload, of which"),
        ("rest", "that no length in the head stands for"), ("long revision", "revision"),
    ]

    @Test(arguments: acts)
    func endTheChild(act: String, words: String) throws {
        for isWrite in [true, false] {
            let test = try TestChild(
                .unruly, callTimeout: .milliseconds(act == "hang" || act == "half" ? 5000 : 30_000))
            let clients = try test.open()
            let failure = try #require(throws: PluginFailure.self) {
                if isWrite {
                    _ = try test.write([Change(id: "do:\(act)", item: "1")], in: clients)
                } else {
                    _ = try test.read(["do:\(act)"], in: clients)
                }
            }
            #expect(failure.status == (isWrite ? CRUDD_OUTCOME_UNKNOWN : CRUDD_UNAVAILABLE))
            #expect(failure.message.contains(words), "\(failure.message)")
            #expect(test.child.loss == failure.message)
            #expect(try test.losses.take() == "lost")
            let next = try #require(throws: PluginFailure.self) { try test.read(["a"], in: clients) }
            #expect(next.status == CRUDD_UNAVAILABLE && next.message == failure.message)
        }
    }

    /// A process that the child has left behind holds its channel and floods the log: nobody waits for it.
    @Test func aGrandchildDoesNotOutliveTheChildForTheDaemon() throws {
        let test = try TestChild(.grandchild)
        let text = String(decoding: try Files.read("\(test.directory.path)/grandchild"), as: UTF8.self)
        let grandchild = try #require(pid_t(text.dropLast()))
        defer { kill(grandchild, SIGKILL) }
        let clients = try test.open()
        let failure = try #require(throws: PluginFailure.self) { try test.read(["do:die"], in: clients) }
        #expect(failure.message.hasSuffix("ended with status 3"), "\(failure.message)")
        #expect(try test.losses.take() == "lost")
    }

    @Test func aReplyMayComeInParts() throws {
        let test = try TestChild(.unruly)
        let clients = try test.open()
        for _ in 0..<3 { #expect(try test.read(["do:parts"], in: clients) == ["0 do:parts=7@r"]) }
    }

    /// Calls `body` with a child, and again with more time for its calls where that fails: on a busy machine Python may
    /// take a second to start.
    ///
    /// - Parameter body: is given an id with which a call advances for twice the time that calls may take.
    private func withProgress(_ body: (TestChild, _ clients: OpaquePointer, _ id: String) throws -> Void) throws {
        func attempt(_ seconds: Int) throws {
            let test = try TestChild(.unruly, callTimeout: .seconds(seconds))
            try body(test, test.open(), "do:progress=\(2 * seconds)s")
        }
        for seconds in [1, 5] where (try? attempt(seconds)) != nil { return }
        try attempt(20)
    }

    /// A call that says that it advances may take longer than calls may.
    @Test func progressPostponesTheTimeout() throws {
        try withProgress { test, clients, id in
            let records = try test.read([id], in: clients)
            let outcomes = try test.write([Change(id: id, item: "1")], in: clients)
            #expect(records == [] && outcomes == ["ok"] && test.child.loss == nil)
        }
    }

    @Test func aStorageThatIsLostIsKnown() throws {
        let test = try TestChild(.unruly)
        let clients = try test.open()
        let failure = try #require(throws: PluginFailure.self) { try test.read(["do:down"], in: clients) }
        #expect(failure.status == CRUDD_UNAVAILABLE && failure.message == "no server")
        #expect(try test.states.take() == "down: the server is gone")
        #expect(try test.read(["do:up"], in: clients) == [])
        // Nobody is calling then.
        #expect(try test.states.take() == "up: the server is back")
        #expect(test.child.loss == nil)
    }

    @Test func whatNobodyHasAskedForEndsTheChild() throws {
        let test = try TestChild(.unruly)
        let clients = try test.open()
        #expect(try test.read(["do:unasked"], in: clients) == [])
        #expect(try test.losses.take() == "lost")
        #expect(test.child.loss?.contains("which is not open") == true)
    }

    /// Who interrupts a call waits for a reply all the same, but not for longer than calls may take.
    @Test func anInterruptedCallSaysSo() throws {
        let test = try TestChild(.unruly, callTimeout: .seconds(30))
        let clients = try test.open()
        var asked = 0
        let failure = try #require(throws: PluginFailure.self) {
            try test.read(["do:progress"], in: clients) {
                asked += 1
                return asked > 3
            }
        }
        #expect(failure.status == CRUDD_INTERRUPTED)
        let overdue = try #require(throws: PluginFailure.self) {
            try test.read(["do:progress"], in: clients, deadline: CallContext.deadline(in: .milliseconds(50)))
        }
        #expect(overdue.status == CRUDD_INTERRUPTED)
        #expect(test.child.loss == nil)
        #expect(try test.read(["a"], in: clients) == [])
    }

    @Test func progressDoesNotPostponeTheEndOfAnInterruptedCall() throws {
        try withProgress { test, clients, id in
            let failure = try #require(throws: PluginFailure.self) { try test.read([id], in: clients) { true } }
            #expect(failure.status == CRUDD_UNAVAILABLE && failure.message.contains("did not reply"))
        }
    }

    @Test func optionsAreRefused() throws {
        let failure = try #require(throws: PluginFailure.self) { try TestChild(options: #","pat":1"#) }
        #expect(failure.isAboutOptions && failure.pointer == "/pat")
    }

    @Test(arguments: ["checkOptions", "open"])
    func aChildThatEndsAsItIsStarted(method: String) throws {
        #expect(throws: (any Error).self) { try TestChild(.unruly, options: #","do":"\#(method):die""#) }
    }

    @Test func whatItTakesBackAsItIsOpened() throws {
        let test = try TestChild(.unruly, options: #","do":"open:forgo""#)
        #expect(test.opened.capabilities == [])
    }
}
