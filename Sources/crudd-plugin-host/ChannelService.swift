import CRUDJSON
import CRUDPluginABI
import CRUDPluginHost
import Glibc

/// Serves one channel, on one thread: a request, its reply, and so on until the daemon closes it.
final class ChannelService {
    let storage: Storage
    var table: UnsafePointer<crudd_plugin> { storage.table }
    // Those that every request needs are not checked for exclusive access at run time, which a profile shows: one thread
    // uses them, and nothing that is called during an access comes back to them.

    @exclusivity(unchecked) private var socket: FramedSocket
    @exclusivity(unchecked) var reply = FrameWriter()
    /// The number of the request under way.
    @exclusivity(unchecked) private var number = 0
    private var request = FrameReader()
    /// A frame of a reply that is as long is sent, and the reply goes on in another.
    static let frameBytes = 1 << 20
    @exclusivity(unchecked) private var reader: ChannelReader?
    /// Whether waiting for a request ends when a view has been held for long enough.
    @exclusivity(unchecked) private var isWatchful = false
    let failure = UnsafeMutablePointer<crudd_failure>.allocate(capacity: 1)

    init(_ descriptor: CInt, _ storage: Storage) {
        // The daemon vouches for the size of what it sends.
        socket = FramedSocket(owning: descriptor, maximumFrameBytes: Int(UInt32.max))
        self.storage = storage
    }

    deinit { failure.deallocate() }

    /// Why a call is not answered with a result.
    struct Refusal: Error {
        var status: Int
        var message: String
        var pointer = ""
    }

    func run() {
        do throws(FramedSocket.Fault) {
            while true {
                guard answer(try receive()) else { continue }
                try socket.send(reply.bytes, until: nil)
            }
        } catch {
            if error != .ended { fail("the daemon cannot be understood: \(error)") }
        }
        reader = nil
    }

    /// Waits for a request, and lets go of the view if none comes.
    private func receive() throws(FramedSocket.Fault) -> UnsafeBufferPointer<UInt8> {
        if reader?.holdsView == true, !isWatchful {
            socket.setReceivingPatience(BackendReader.maximumSnapshotAge)
            isWatchful = true
        }
        do throws(FramedSocket.Fault) {
            return try socket.receive(until: nil)
        } catch {
            guard error == .overdue else { throw error }
        }
        reader?.endView()
        socket.setReceivingPatience(nil)
        isWatchful = false
        return try socket.receive(until: nil)
    }

    /// The channel's own reader, to read with once.
    func readerOfPlugin() throws(Refusal) -> OpaquePointer {
        if reader == nil {
            let backend = try backend()
            var opened: OpaquePointer?
            try check { table.pointee.open_reader(backend, &opened, $0) }
            guard let opened else { throw Refusal(status: CRUDD_INTERNAL, message: "the plugin made no reader") }
            reader = ChannelReader(opened, of: table)
        }
        // It has just been made, if it was not there.
        return reader!.forReading(storage)
    }

    func backend() throws(Refusal) -> OpaquePointer {
        guard let backend = storage.backend else {
            throw Refusal(status: CRUDD_INTERNAL, message: "nothing is open")
        }
        return backend
    }

    /// Makes a call of the plugin.
    func check(_ call: (UnsafeMutablePointer<crudd_failure>) -> crudd_status) throws(Refusal) {
        failure.initialize(to: crudd_failure())
        failure.pointee.struct_size = UInt32(MemoryLayout<crudd_failure>.size)
        let status = call(failure)
        guard Int(status) != CRUDD_OK else { return }
        throw Refusal(
            status: Int(status), message: Self.text(failure.pointee.message),
            pointer: Self.text(failure.pointee.pointer))
    }

    /// The text in a C array of characters, up to its terminator or its end.
    private static func text<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    // MARK: The envelope

    /// Carries out a request; its reply, or the last frame of it, is ready to be sent then. False for what is not answered.
    private func answer(_ frame: UnsafeBufferPointer<UInt8>) -> Bool {
        var hasAnswered = false
        do throws(FrameFault) {
            var number: Int?
            var method: FrameText?
            request.begin(frame)
            try request.object { (request, key) throws(FrameFault) in
                if request.isKey(key, "id") {
                    number = try request.count()
                } else if request.isKey(key, "method") {
                    method = try request.string()
                } else if request.isKey(key, "params"), let number, let method {
                    try answer(String(decoding: request.bytes(method), as: UTF8.self), number, &request)
                    hasAnswered = true
                } else {
                    try request.skip()
                }
            }
            // An interrupt that has come too late.
            if number == nil { return false }
            guard hasAnswered else { throw FrameFault("the daemon writes `id`, `method`, `params`, in this order") }
        } catch {
            fail("the daemon cannot be understood: \(error)")
        }
        reply.end()
        return true
    }

    private func answer(_ method: String, _ number: Int, _ request: inout FrameReader) throws(FrameFault) {
        let parameters = request.position
        self.number = number
        beginReply()
        do throws(Refusal) {
            try carryOut(method, &request)
            reply.raw("}}")
        } catch {
            refuse(error)
            request.go(to: parameters)
            try request.skip()
        }
    }

    private func beginReply() {
        reply.begin()
        reply.raw(#"{"id":"#)
        reply.integer(number)
        reply.raw(#","result":{"#)
    }

    /// Sends what there is of a result; the reply goes on in another frame.
    ///
    /// - Parameter closing: what the result's members lack.
    func sendPart(closing: StaticString) {
        reply.raw(closing)
        reply.raw(#"},"more":true}"#)
        reply.end()
        do throws(FramedSocket.Fault) {
            try socket.send(reply.bytes, until: nil)
        } catch {
            fail("the daemon does not listen: \(error)")
        }
        beginReply()
    }

    /// Whether the daemon has said something while a call is under way: that it is not interested any more.
    var isInterrupted: Bool { socket.isReadable(within: .zero) }

    private func refuse(_ refusal: Refusal) {
        reply.begin()
        reply.raw(#"{"id":"#)
        reply.integer(number)
        reply.raw(#","error":{"status":""#)
        reply.raw(StatusName.name(of: refusal.status))
        reply.raw(#"","message":"#)
        reply.string(refusal.message)
        if !refusal.pointer.isEmpty {
            reply.raw(#","pointer":"#)
            reply.string(refusal.pointer)
        }
        reply.raw("}}")
    }

    private func carryOut(_ method: String, _ request: inout FrameReader) throws(Refusal) {
        switch method {
        case "read": try read(&request)
        case "write": try write(&request)
        case "hello": try hello(&request)
        case "checkOptions": try checkOptions(&request)
        case "open": try open(&request)
        case "openCollection": try openCollection(&request)
        case "dropCollection": try dropCollection(&request)
        case "listCollections": try listCollections(&request)
        case "scan": try scan(&request)
        case "count": try count(&request)
        case "query": try query(&request)
        case "idle": try idle(&request)
        default: throw Refusal(status: CRUDD_UNSUPPORTED, message: "there is no method \(method)")
        }
    }
}

extension FrameReader {
    /// Reads the members of `params`.
    mutating func parameters(
        _ member: (inout FrameReader, JSONSlice) throws(FrameFault) -> Void
    ) throws(ChannelService.Refusal) {
        do throws(FrameFault) {
            try object(member)
        } catch {
            throw ChannelService.Refusal(status: CRUDD_INTERNAL, message: "the request is wrong: \(error)")
        }
    }
}
