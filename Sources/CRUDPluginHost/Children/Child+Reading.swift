import CRUDPluginABI

/// Reading through a child. A long reply comes in several frames.
extension Child {
    /// Reads records by id.
    func read(_ request: crudd_read, _ call: crudd_call) throws(PluginFailure) {
        let ids = UnsafeBufferPointer(start: request.ids, count: request.count)
        let collection = ChildTable.number(of: request.collection)
        let flags = Int(request.flags)
        try self.call("read", for: .reading, interrupt: ChildCall.Interrupt(call)) { frame in
            frame.read(
                ids, in: collection, withItems: flags & CRUDD_READ_WITHOUT_ITEMS == 0,
                toWrite: flags & CRUDD_READ_TO_WRITE != 0, now: call.now)
        } _: { reader throws(ProtocolViolation) in
            try reader.recordsRead(of: ids.count) { index, record in
                record.id = ids[index]
                return request.emit(request.context, index, &record) == 0
            }
        }
    }

    /// Scans records in order.
    func scan(_ request: crudd_scan, _ call: crudd_call) throws(PluginFailure) {
        var pager = ScanPager(request, collection: ChildTable.number(of: request.collection))
        repeat {
            try self.call("scan", for: .reading, interrupt: ChildCall.Interrupt(call)) { frame in
                pager.writePage(to: &frame, now: call.now)
            } _: { reader throws(ProtocolViolation) in
                try reader.records { (_, record) throws(ProtocolViolation) in try pager.take(&record) }
                return pager.isWanted
            }
        } while pager.hasNext
    }

    /// Counts records.
    func count(_ request: crudd_count, _ call: crudd_call) throws(PluginFailure) -> UInt64 {
        var count: UInt64?
        try self.call("count", for: .reading, interrupt: ChildCall.Interrupt(call)) { frame in
            frame.raw(#""collection":"#, ChildTable.number(of: request.collection))
            frame.range(crudd_range.read(request.range))
            frame.raw(#","limit":"#, request.limit)
            frame.raw(#","now":"#, call.now)
        } _: { reader throws(ProtocolViolation) in
            try reader.object(with: "count") { (reader) throws(ProtocolViolation) in count = try reader.integer() }
            guard count != nil else { throw ProtocolViolation("a reply without a count") }
            return true
        }
        return count ?? 0
    }
}
