import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDTestSupport
import Testing

@testable import CRUDServer
@testable import CRUDStorage

/// The elements of a batch array: which of them may be in flight together, and what their replies come to.
@Suite struct BatchArrayTests {
    private func array(_ count: Int, frameBytes: Int = 1 << 20) -> BatchArray {
        var limits = Configuration.Limits()
        limits.frameBytes = frameBytes
        limits.itemBytes = frameBytes / 2
        let element = JSONSlice(start: 0, end: 2, kind: .object)
        return BatchArray(
            text: Array("{}".utf8), elements: Array(repeating: element, count: count), arrival: .zero,
            deadline: .seconds(1), limits)
    }

    private func text(_ array: BatchArray) -> String {
        var output = StreamBuffer()
        array.finish(into: &output)
        return String(decoding: Array(output.bytes.dropFirst(4)), as: UTF8.self)
    }

    /// Writes to one backend are in flight together; everything else waits for what is before it.
    @Test func onlyWritesToOneBackendOverlap() throws {
        let (backend, other) = (try UnopenedBackend(), try UnopenedBackend())
        let array = array(4)
        #expect(array.admits(.read, on: backend.client) && !array.isBlocked)
        array.started(.write, on: backend.client)
        #expect(array.admits(.write, on: backend.client) && !array.isBlocked)
        #expect(!array.admits(.write, on: other.client) && !array.admits(.write, on: nil))
        for kind in [RequestKind.read, .scan, .slicedWrite] { #expect(!array.admits(kind, on: backend.client)) }
        array.started(.write, on: backend.client)
        array.replied()
        #expect(!array.admits(.read, on: backend.client))
        array.replied()
        #expect(array.admits(.read, on: other.client))
        array.started(.read, on: other.client)
        #expect(array.isBlocked && !array.admits(.write, on: other.client))
    }

    /// Elements in flight share the room for items; the next ones get what is left then.
    @Test func elementsInFlightShareTheRoom() throws {
        let backend = try UnopenedBackend()
        let array = array(3)
        array.started(.write, on: backend.client)
        let budget = array.budget
        #expect(array.budget === budget)
        array.replied()
        #expect(array.budget !== budget)
    }

    @Test func repliesAreOneArray() {
        let array = array(3)
        for id in ["1", "2"] {
            _ = array.appendResponse(to: Array(id.utf8).span) { output throws(CRUDError) in
                output.append("{}")
                return true
            }
        }
        let replies = text(array)
        #expect(replies.hasPrefix("[{") && replies.hasSuffix("}]"))
        #expect(replies.contains(#""id":1"#) && replies.contains(#""id":2"#))
        #expect(!replies.contains(",]") && !replies.contains(",,"))
    }

    /// Where the replies do not fit a frame, the reply as a whole is an error, whatever has been executed.
    @Test func whatDoesNotFitIsOneError() {
        let array = array(40, frameBytes: 1 << 10)
        let long = Array(#""\#(String(repeating: "x", count: 100))""#.utf8)
        for _ in 0..<40 {
            _ = array.appendResponse(to: Array("1".utf8).span) { output throws(CRUDError) in
                output.append(long.span)
                return true
            }
        }
        let reply = text(array)
        #expect(reply.contains("limit_exceeded") && !reply.contains("xxx"))
    }
}
