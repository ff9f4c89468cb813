import CRUDPluginABI

/// Expiry and removals through a child.
extension Child {
    /// Has the child remove records that have expired.
    ///
    /// - Returns: the lowest expiry of those that are left; 0: none.
    func removeExpired(_ request: crudd_expire, _ call: crudd_call) throws(PluginFailure) -> Int64 {
        var count = 0
        let numbersItself = capabilities.isSuperset(of: [.shared, .sequences])
        let (end, overflows) = request.first_sequence.addingReportingOverflow(UInt64(clamping: request.limit))
        var sequences = request.first_sequence..<(overflows ? .max : end)
        var nextExpiry: Int64 = 0
        try self.call("removeExpired", for: .writing) { frame in
            frame.raw(#""collection":"#, ChildTable.number(of: request.collection))
            frame.raw(#","limit":"#, request.limit)
            frame.raw(#","firstSequence":"#, request.first_sequence)
            frame.raw(#","now":"#, call.now)
        } _: { reader throws(ProtocolViolation) in
            try reader.records { (_, record) throws(ProtocolViolation) in
                guard RecordCodec.isID(record.id.buffer) else {
                    throw ProtocolViolation("a record without an id, or with an invalid one")
                }
                guard record.isRemoved, numbersItself || sequences.contains(record.sequence) else {
                    throw ProtocolViolation("a removal that was not asked for, or out of order")
                }
                if !numbersItself { sequences = record.sequence + 1..<sequences.upperBound }
                _ = request.emit(request.context, count, &record)
                count += 1
            } member: { (reader, key) throws(ProtocolViolation) in
                if "nextExpiry" ~= key { nextExpiry = Int64(try reader.signedInteger()) } else { try reader.skip() }
            }
            return true
        }
        return nextExpiry
    }

    /// Has the child forget removals.
    func trimHistory(_ request: crudd_trim, _ call: crudd_call) throws(PluginFailure) -> crudd_history {
        var history = crudd_history.sized()
        try self.call("trimHistory", for: .writing) { frame in
            frame.raw(#""collection":"#, ChildTable.number(of: request.collection))
            frame.raw(#","before":"#, max(request.before, 0))
            frame.raw(#","limit":"#, request.limit)
            frame.raw(#","now":"#, call.now)
        } _: { reader throws(ProtocolViolation) in
            history = try reader.history()
            return true
        }
        return history
    }

    /// Has the child say what a collection remembers, and up to where its changes can be read.
    func readHistory(of collection: OpaquePointer?, _ call: crudd_call) throws(PluginFailure) -> crudd_history {
        var history = crudd_history.sized()
        try self.call("readHistory", for: .reading, interrupt: ChildCall.Interrupt(call)) { frame in
            frame.raw(#""collection":"#, ChildTable.number(of: collection))
            frame.raw(#","now":"#, call.now)
        } _: { reader throws(ProtocolViolation) in
            history = try reader.history()
            return true
        }
        return history
    }

    /// Has the child continue the history of another collection.
    func takeHistory(_ request: crudd_taken_history, _ call: crudd_call) throws(PluginFailure) {
        try self.call("takeHistory", for: .writing) { frame in
            frame.raw(#""collection":"#, ChildTable.number(of: request.collection))
            frame.raw(#","identity":"#, request.identity)
            frame.raw(#","forgotten":"#, request.forgotten)
            frame.raw(#","lastSequence":"#, request.last_sequence)
            frame.raw(#","now":"#, call.now)
            frame.raw(#","removals":["#)
            for position in 0..<request.count {
                // The caller has initialized as many elements, each of that size.
                let place = UnsafeRawPointer(request.removals) + position * request.removal_size
                let removal = crudd_record.read(place.assumingMemoryBound(to: crudd_record.self))
                frame.raw(position == 0 ? #"{"id":"# : #",{"id":"#)
                frame.bytes(removal.id.buffer)
                frame.raw(#","sequence":"#, removal.sequence)
                frame.raw("}")
            }
            frame.raw("]")
        } _: { reader throws(ProtocolViolation) in
            try reader.object { (reader, _) throws(ProtocolViolation) in try reader.skip() }
            return true
        }
    }
}

extension FrameReader {
    fileprivate mutating func history() throws(ProtocolViolation) -> crudd_history {
        var history = crudd_history.sized()
        try object { (reader, key) throws(ProtocolViolation) in
            switch key {
            case "identity": history.identity = try reader.integer()
            case "forgotten": history.forgotten = try reader.integer()
            case "trimmed": history.trimmed = try reader.integer()
            case "end": history.end = try reader.integer()
            case "next": history.next = try reader.integer()
            default: try reader.skip()
            }
        }
        guard history.identity != 0 else { throw ProtocolViolation("a history without an identity") }
        return history
    }
}
