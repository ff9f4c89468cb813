import CRUDClient
import Foundation
import ScriptedDaemon
import Testing

/// Many calls on one connection, with replies in any order and in pieces.
@Suite struct ConnectionTests {
    @Test func matchesRepliesInAnyOrder() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            for request in try peer.requests(100).reversed() {
                try peer.reply(to: request, #"{"id":"x","item":"\#(request.strings["id"] ?? "")","revision":"1"}"#)
            }
            try peer.awaitClosing()
        }
        let repository = try await CRUDClient.connect(path: daemon.path).repository("things")
        try await withThrowingTaskGroup { group in
            for index in 0..<100 {
                group.addTask {
                    let item: String = try await repository.read(id: "\(index)")
                    #expect(item == "\(index)")
                }
            }
            try await group.waitForAll()
        }
        await repository.client.close()
        try await daemon.finish()
    }

    @Test func readsRepliesThatComeByteByByte() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let requests = try peer.requests(2)
            let frames = requests.flatMap { ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":\#($0.id),"result":{}}"#) }
            for byte in frames { try peer.write([byte]) }
            try peer.awaitClosing()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        async let first: Void = client.ping()
        async let second: Void = client.ping()
        _ = try await (first, second)
        await client.close()
        try await daemon.finish()
    }

    @Test func carriesItemsOfManyMegabytes() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let create = try peer.request()
            try peer.reply(to: create, #"{"revision":"1"}"#)
            let read = try peer.request()
            let item = try #require(create.text.range(of: #"""# + String(repeating: "x", count: 8 << 20) + #"""#))
            try peer.reply(to: read, #"{"id":"big","item":\#(create.text[item]),"revision":"1"}"#)
            try peer.awaitClosing()
        }
        let repository = try await CRUDClient.connect(path: daemon.path).repository("things")
        let item = String(repeating: "x", count: 8 << 20)
        try await repository.create(id: "big", item: item)
        #expect(try await repository.read(id: "big") == item)
        await repository.client.close()
        try await daemon.finish()
    }

    @Test func refusesFramesThatTheDaemonWouldRefuse() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept(frameBytes: 1000)
            try peer.reply(to: try peer.request(), "{}")
            try peer.awaitClosing()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let error = await #expect(throws: CRUDError.self) {
            try await client.repository("things").create(id: "x", item: String(repeating: "x", count: 1000))
        }
        #expect(error?.code == .limitExceeded)
        #expect(error?.details == CRUDError.Details(limit: "frame_bytes", maximum: 1000))
        try await client.ping()
        await client.close()
        try await daemon.finish()
    }

    /// The daemon's limit applies to open connections, too, when it is raised.
    @Test func readsFramesThatTheHelloDidNotAllow() async throws {
        let item = String(repeating: "x", count: 5000)
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept(frameBytes: 1000)
            try peer.reply(to: try peer.request(), #"{"id":"x","item":"\#(item)","revision":"1"}"#)
            try peer.awaitClosing()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        #expect(try await client.repository("things").read(id: "x") == item)
        await client.close()
        try await daemon.finish()
    }

    /// A reload has lowered the limit: the daemon has replied to what came before, and executed nothing else.
    @Test func sendsAgainWhatCameAfterAFrameThatIsTooLong() async throws {
        let daemon = try ScriptedDaemon { listener in
            let first = try listener.accept()
            let requests = try first.requests(4)
            for request in requests where request.text.contains("before") {
                try first.reply(to: request, #"{"exists":true}"#)
            }
            try first.send(
                #"{"jsonrpc":"2.0","id":null,"error":{"code":-32007,"message":"long","data":{"name":"limit_exceeded","#
                    + #""retryable":false,"details":{"limit":"frame_bytes","maximum":1000}}}}"#)
            try first.awaitClosing()
            let second = try listener.accept(frameBytes: 1000)
            let again = try second.requests(2)
            for request in again {
                try second.reply(to: request, request.method == "record.exists" ? #"{"exists":true}"# : "{}")
            }
            try second.awaitClosing()
            return (requests.map(\.text), again.map(\.text))
        }
        let things = try await CRUDClient.connect(path: daemon.path).repository("things")
        async let before = things.exists(id: "before")
        async let read = things.exists(id: "behind")
        async let write: Void = things.delete(id: "behind")
        let long = await #expect(throws: CRUDError.self) {
            try await things.create(id: "long", item: String(repeating: "x", count: 2000))
        }
        #expect(long?.code == .limitExceeded)
        #expect(long?.details == CRUDError.Details(limit: "frame_bytes", maximum: 1000))
        #expect(try await before)
        #expect(try await read)
        try await write
        await things.client.close()
        let (sent, again) = try await daemon.finish()
        #expect(again.sorted() == sent.filter { $0.contains("behind") }.sorted())
    }

    /// Frames that violate the protocol.
    static let violations: [[UInt8]] = [
        [0xFF, 0xFF, 0xFF, 0xFF],
        [0x40, 0x00, 0x00, 0x01],
        ScriptedPeer.frame(""),
        ScriptedPeer.frame("nonsense"),
        ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":1,"result":{}} "x""#),
        [0, 0, 0, 3, 0x22, 0xFF, 0x22],
        ScriptedPeer.frame("17"),
        ScriptedPeer.frame("{}"),
        ScriptedPeer.frame(#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#),
        ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":1}"#),
        ScriptedPeer.frame(#"{"id":1,"result":{}}"#),
        ScriptedPeer.frame(#"{"jsonrpc":"1.0","id":1,"result":{}}"#),
        ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#),
        ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":1,"id":1,"result":{}}"#),
        ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":1,"error":"no"}"#),
        ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":"1","result":{}}"#),
        ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#),
        ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":99,"result":{}}"#),
        ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":null,"result":{}}"#),
        ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#),
        ScriptedPeer.frame(#"{"jsonrpc":"2.0","id":99999999999999999999,"result":{}}"#),
    ]

    @Test(arguments: violations)
    func closesOnAViolationAndConnectsAgain(_ bytes: [UInt8]) async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            _ = try peer.requests(2)
            try peer.write(bytes)
            try peer.awaitClosing()
            let second = try listener.accept()
            try second.reply(to: try second.request(), "{}")
            try second.awaitClosing()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let read = Task { try await client.ping() }
        let write = Task { try await client.repository("things").delete(id: "x") }
        let readError = await #expect(throws: CRUDError.self) { try await read.value }
        #expect(readError?.code == .internalError)
        #expect(readError?.message.contains("violated the protocol") == true)
        let writeError = await #expect(throws: CRUDError.self) { try await write.value }
        #expect(writeError?.code == .outcomeUnknown)
        try await client.ping()
        await client.close()
        try await daemon.finish()
    }

    @Test func handsOnErrorsWithTheirDetails() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            try peer.reject(
                try peer.request(),
                #"{"code":-32003,"message":"changed","data":{"name":"revision_mismatch","retryable":false,"#
                    + #""details":{"revision":"r\u0032","new in 2.0":[1]}}}"#)
            try peer.reject(try peer.request(), #"{"code":-31999,"message":"new in 2.0"}"#)
            try peer.awaitClosing()
        }
        let repository = try await CRUDClient.connect(path: daemon.path).repository("things")
        let mismatch = await #expect(throws: CRUDError.self) {
            try await repository.delete(id: "x", ifRevision: Revision("r1"))
        }
        #expect(mismatch?.code == .revisionMismatch)
        #expect(mismatch?.details == CRUDError.Details(revision: "r2"))
        let unknown = await #expect(throws: CRUDError.self) { try await repository.delete(id: "x") }
        #expect(unknown?.code.rawValue == -31999)
        await repository.client.close()
        try await daemon.finish()
    }

    @Test func keepsBackWhatTheSocketDoesNotTake() async throws {
        let gate = Gate()
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            try gate.pass()
            peer.close()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let item = String(repeating: "x", count: 100_000)
        let codes = await withTaskGroup { group in
            for index in 0..<64 {
                group.addTask {
                    await #expect(throws: CRUDError.self) {
                        try await CRUDClient.withDeadline(in: .seconds(5)) {
                            try await client.repository("things").create(id: "\(index)", item: item)
                        }
                    }?.code
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        // The daemon reads nothing: the outcome of calls that fit into the socket is unknown, the others are not sent.
        #expect(codes.contains(.outcomeUnknown))
        #expect(codes.contains(.timedOut))
        #expect(codes.allSatisfy { $0 == .outcomeUnknown || $0 == .timedOut })
        gate.open()
        try await daemon.finish()
    }
}
