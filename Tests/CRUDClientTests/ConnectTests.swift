import CRUDClient
import CRUDTestSupport
import Foundation
import ScriptedDaemon
import Testing

@Suite struct ConnectTests {
    enum Obstacle: CaseIterable {
        case nothing, file, staleSocket, missingDirectory, tooLongPath
    }

    @Test(arguments: Obstacle.allCases)
    func failsAtOnceNamingThePath(_ obstacle: Obstacle) async throws {
        let directory = try TemporaryDirectory()
        var path = directory.path + "/daemon.sock"
        switch obstacle {
        case .nothing: break
        case .file: try Data().write(to: URL(fileURLWithPath: path))
        case .staleSocket:
            let socket = try ScriptedListener(path: path)
            try FileManager.default.moveItem(atPath: path, toPath: path + "-moved")
            socket.stop()
            path += "-moved"
        case .missingDirectory: path = directory.path + "/none/daemon.sock"
        case .tooLongPath: path = directory.path + "/" + String(repeating: "x", count: 120)
        }
        let error = await #expect(throws: CRUDError.self) { try await CRUDClient.connect(path: path) }
        #expect(error?.code == .unavailable)
        #expect(error?.message.contains(path) == true)
    }

    @Test func introducesItself() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.acceptSilently()
            let hello = try peer.request()
            try peer.reply(to: hello, #"{"daemon":"crudd","version":"9","protocol":1,"limits":{}}"#)
            try peer.awaitClosing()
            return hello
        }
        let client = try await CRUDClient.connect(path: daemon.path, options: .init(name: "a test"))
        await client.close()
        let hello = try await daemon.finish()
        #expect(hello.method == "session.hello")
        #expect(hello.strings["client"] == "a test")
        #expect(hello.text.contains(#""protocol":1"#))
    }

    @Test func refusesAnotherProtocol() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.acceptSilently()
            try peer.reply(to: try peer.request(), #"{"daemon":"crudd","version":"9","protocol":2,"limits":{}}"#)
            try peer.awaitClosing()
        }
        let error = await #expect(throws: CRUDError.self) { try await CRUDClient.connect(path: daemon.path) }
        #expect(error?.code == .unsupported)
        try await daemon.finish()
    }

    @Test func handsOnWhyTheDaemonRefuses() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.acceptSilently()
            try peer.send(
                #"{"jsonrpc":"2.0","id":null,"error":{"code":-32007,"message":"full","data":{"name":"limit_exceeded","#
                    + #""retryable":false,"details":{"limit":"sessions","maximum":7}}}}"#)
        }
        let error = await #expect(throws: CRUDError.self) { try await CRUDClient.connect(path: daemon.path) }
        #expect(error?.code == .limitExceeded)
        #expect(error?.details == CRUDError.Details(limit: "sessions", maximum: 7))
        try await daemon.finish()
    }

    @Test func givesUpOnASilentDaemonAtTheDeadline() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.acceptSilently()
            _ = try peer.request()
            try peer.awaitClosing()
        }
        let error = await #expect(throws: CRUDError.self) {
            try await CRUDClient.withDeadline(in: .seconds(5)) {
                try await CRUDClient.connect(path: daemon.path)
            }
        }
        #expect(error?.code == .timedOut)
        #expect(error?.cause is DeadlineExceeded)
        try await daemon.finish()
    }

    @Test func honoursCancellation() async throws {
        let connected = Signal()
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.acceptSilently()
            _ = try peer.request()
            connected.send()
            try peer.awaitClosing()
        }
        let attempt = Task { try await CRUDClient.connect(path: daemon.path) }
        await connected.wait()
        attempt.cancel()
        await #expect(throws: CancellationError.self) { try await attempt.value }
        try await daemon.finish()
    }

    /// One that was made without `connect` waits for its daemon with its first calls.
    @Test func aClientNeedsNoDaemonYet() async throws {
        let stopped = Signal()
        let gate = Gate()
        let daemon = try ScriptedDaemon { listener in
            listener.stop()
            stopped.send()
            try gate.pass()
            try listener.listen()
            let peer = try listener.accept()
            try peer.reply(to: try peer.request(), "{}")
            try peer.awaitClosing()
        }
        await stopped.wait()
        let client = CRUDClient(path: daemon.path)
        let deadline = Deadline()
        var error: CRUDError?
        // A busy machine may not have tried to connect by then.
        repeat {
            error = await #expect(throws: CRUDError.self) {
                try await CRUDClient.withDeadline(in: .milliseconds(50)) { try await client.ping() }
            }
        } while error?.message.contains("is crudd running?") == false && !deadline.hasPassed
        #expect(error?.code == .timedOut && error?.message.contains("is crudd running?") == true)
        let call = Task { try await client.ping() }
        gate.open()
        try await call.value
        await client.close()
        try await daemon.finish()
    }

    @Test func closesWithItsLastReference() async throws {
        let daemon = try ScriptedDaemon { try $0.accept().awaitClosing() }
        _ = try await CRUDClient.connect(path: daemon.path)
        try await daemon.finish()
    }

    @Test func saysThatItIsClosed() async throws {
        let daemon = try ScriptedDaemon { try $0.accept().awaitClosing() }
        let client = try await CRUDClient.connect(path: daemon.path)
        await client.close()
        let error = await #expect(throws: CRUDError.self) { try await client.ping() }
        #expect(error?.code == .unavailable)
        try await daemon.finish()
    }
}
