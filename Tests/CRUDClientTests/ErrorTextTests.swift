import CRUDClient
import CRUDTestSupport
import Foundation
import ScriptedDaemon
import Testing

/// What people read of an error.
@Suite struct ErrorTextTests {
    @Test func isTheMessageWhereFoundationAsksForIt() {
        let error: any Error = CRUDError(.recordNotFound, "there is no record")
        #expect(error.localizedDescription == "there is no record")
        let caused: any Error = CRUDError(.unavailable, "too late", cause: DeadlineExceeded())
        #expect(caused.localizedDescription == "too late (deadline exceeded)")
    }

    @Test func aConnectionErrorTellsItsCauseOnce() async throws {
        let path = try TemporaryDirectory().path + "/daemon.sock"
        let error = try #require(
            await #expect(throws: CRUDError.self) { try await CRUDClient.connect(path: path) })
        let message = "cannot connect to the daemon at \(path): No such file or directory; is crudd running?"
        #expect(error.cause != nil && "\(error)" == "unavailable: \(message)")
        #expect(error.localizedDescription == message)
    }

    @Test func soDoesALostConnection() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            _ = try peer.request()
            peer.close()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let error = try #require(
            await #expect(throws: CRUDError.self) { try await client.repository("things").create(id: "a", item: 1) })
        let text = "\(error)"
        #expect(error.code == .outcomeUnknown && text.contains("the daemon at \(daemon.path) closed the connection"))
        #expect(text.count { $0 == "(" } == text.count { $0 == ")" }, "\(text)")
        await client.close()
    }

    /// The time of a call is that of all attempts together; before, there were thirty seconds of them.
    @Test func conflictsEndWithTheTimeOfACall() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            while let request = try? peer.request() {
                if request.method == "record.read" {
                    try? peer.reply(to: request, #"{"id":"a","item":{"n":1},"revision":"1"}"#)
                } else {
                    try? peer.reject(request, #"{"code":-32003,"message":"conflict","data":{}}"#)
                }
            }
        }
        let options = CRUDClient.Options(timeout: .milliseconds(300))
        // Connecting may take longer on a busy machine.
        let client = try await CRUDClient.withDeadline(in: .seconds(60)) {
            try await CRUDClient.connect(path: daemon.path, options: options)
        }
        let counters = client.repository("counters", of: [String: Int].self)
        #expect(counters.store.timeout == .milliseconds(300))
        let start = ContinuousClock.now
        let error = await #expect(throws: CRUDError.self) {
            try await counters.modify(id: "a") { $0["n", default: 0] += 1 }
        }
        // The deadline may pass while a write has been sent.
        #expect(
            error?.cause is DeadlineExceeded && [.timedOut, .outcomeUnknown].contains(error?.code),
            "\(String(describing: error))")
        #expect(start.duration(to: .now) < .seconds(20))
        await client.close()
    }
}
