import CRUDTestSupport
import CRUDThreads
import Glibc
import Testing

@testable import CRUDPluginHost

/// The example on the protocol's page is what really goes to and fro.
@Suite struct ProtocolPageTests {
    private let example: [Substring]

    init() throws {
        let page = try Files.read("\(BuildProducts.packageDirectory)/Sources/CRUDPluginABI/CHILD-PROTOCOL.md")
        let lines = String(decoding: page, as: UTF8.self).split(separator: "\n")
        example = Array(lines[try #require(lines.firstIndex(of: "## Example"))...])
    }

    /// The lines that begin with an arrow, without it.
    private func lines(_ arrow: String) -> [String] {
        example.filter { $0.hasPrefix("\(arrow) {") }.map { String($0.dropFirst(2)) }
    }

    /// The frame that a line shows.
    private func frame(of line: String) -> [UInt8] {
        let parts = line.split(separator: "⟨", maxSplits: 1)
        return frame(String(parts[0]), parts.count > 1 ? String(parts[1].dropLast()) : "")
    }

    private func frame(_ head: String, _ payload: String) -> [UInt8] {
        CRUDPluginHostTests.frame(head, payload)
    }

    @Test func theExampleInPythonSendsTheseReplies() throws {
        let (requests, replies) = (lines("→"), lines("←"))
        try #require(requests.count == 8 && replies.count == 8)
        let directory = try TemporaryDirectory()
        var ends: [CInt] = [0, 0]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let store = "\(BuildProducts.packageDirectory)/Plugins/Examples/store.py"
        let process = try CRUDPluginHost.ChildProcess(
            ["/usr/bin/python3", store], environment: ["LANG=C.UTF-8"], descriptors: [ends[1], ends[1], nil])
        defer {
            process.kill()
            #expect(process.waitForEnd(within: .seconds(30)) != nil)
        }
        close(ends[1])
        var socket = FramedSocket(owning: ends[0], maximumFrameBytes: 1 << 20)
        for (request, reply) in zip(requests, replies) {
            let bytes = frame(of: request.replacing("/srv", with: directory.path))
            try #require(bytes.withUnsafeBytes { send(ends[0], $0.baseAddress, $0.count, 0) } == bytes.count)
            let received = try socket.receive(until: MonotonicTime.now + .seconds(30))
            let expected = Array(frame(of: reply).dropFirst(FrameWriter.lengthBytes))
            if reply.contains(#""identity":"#) {
                #expect(Self.withoutIdentity(Array(received)) == Self.withoutIdentity(expected))
            } else {
                #expect(Array(received) == expected, "\(request)")
            }
        }
    }

    /// The head of a reply, whose length differs with that of the random number in it.
    private static func withoutIdentity(_ reply: [UInt8]) -> String {
        String(decoding: reply.dropFirst(FrameWriter.lengthBytes), as: UTF8.self)
            .replacing(/"identity":[1-9][0-9]*/, with: "identity")
    }

    @Test func theBytesAreThoseOfTheFrames() throws {
        let dump = example.filter { $0.wholeMatch(of: /[0-9a-f]{4}  .*/) != nil }
        let bytes = dump.flatMap { line in
            line.dropFirst(6).prefix(47).split(separator: " ").compactMap { UInt8($0, radix: 16) }
        }
        #expect(bytes == frame(of: lines("→")[6]) + frame(of: lines("←")[6]))
    }

    /// What crudd writes is what the page shows.
    @Test func requestsLookLikeThis() {
        let raw = RawBytes()
        let ids = ["bob", "ada"].map { raw($0) }
        var writer = FrameWriter()
        writer.request("read", number: 7) { $0.read(ids, in: 2, withItems: true, now: 1_767_225_600_900) }
        #expect(writer.withBytes { $0.withUnsafeBufferPointer { Array($0) } } == frame(of: lines("→")[6]))
    }
}
