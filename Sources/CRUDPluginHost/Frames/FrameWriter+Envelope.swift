import CRUDPluginABI

/// What surrounds parameters and results: the heads of requests, replies and notifications.
extension FrameWriter {
    /// Makes a request the frame.
    ///
    /// - Parameter parameters: writes the members of `params`.
    package mutating func request(_ method: StaticString, number: Int, _ parameters: (inout FrameWriter) -> Void) {
        begin()
        raw(#"{"id":"#, number)
        raw(#","method":""#)
        raw(method)
        raw(#"","params":{"#)
        parameters(&self)
        raw("}}")
        end()
    }

    /// Makes the frame say that the rest of the reply is of no use.
    package mutating func interrupt() {
        begin()
        raw(#"{"method":"interrupt"}"#)
        end()
    }

    /// Begins a reply with a result, whose members come next.
    package mutating func beginReply(to number: Int) {
        begin()
        raw(#"{"id":"#, number)
        raw(#","result":{"#)
    }

    /// Ends a reply.
    ///
    /// - Parameter hasMore: whether it continues in another frame.
    package mutating func endReply(hasMore: Bool = false) {
        raw(hasMore ? #"},"more":true}"# : "}}")
        end()
    }

    /// Makes a reply with an error the frame.
    package mutating func failure(_ failure: PluginFailure, to number: Int) {
        begin()
        raw(#"{"id":"#, number)
        raw(#","error":{"status":""#)
        raw(StatusName.name(of: failure.status))
        raw(#"","message":"#, failure.message)
        if !failure.pointer.isEmpty {
            raw(#","pointer":"#, failure.pointer)
        }
        raw("}}")
        end()
    }

    /// Makes the frame say that the call in progress advances.
    package mutating func progress(done: UInt64, total: UInt64) {
        begin()
        raw(#"{"method":"progress","params":{"done":"#, done)
        raw(#","total":"#, total)
        raw("}}")
        end()
    }

    /// Makes the frame say that the storage was lost, or is back.
    package mutating func state(isUp: Bool, reason: UnsafeRawBufferPointer) {
        begin()
        raw(#"{"method":"state","params":{"up":"#, isUp)
        raw(#","reason":"#, reason)
        raw("}}")
        end()
    }

    /// Makes the frame say that more changes of a collection can be read, or that it may have been made.
    package mutating func changed(_ name: UnsafeRawBufferPointer) {
        begin()
        raw(#"{"method":"changed","params":{"name":"#, name)
        raw("}}")
        end()
    }
}
