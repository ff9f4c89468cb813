import CRUDTestSupport
import Testing

extension Connection {
    /// Has each of some connections send a request, and writes a record, one write after the other, until all have
    /// their replies; a few times over, for a busy machine may give this process no time meanwhile.
    ///
    /// - Returns: how many writes there have been in the round with the most of them, which is the last one if there
    ///   were more than requests.
    func mostWrites(
        of id: String, in collection: String, over others: [Connection], _ request: (Int) -> String
    ) throws -> Int {
        var most = 0
        for _ in 0..<10 where most <= others.count {
            for (number, other) in others.enumerated() { try other.sendFrame(request(number)) }
            most = max(most, try writes(of: id, in: collection, whileAwaiting: others))
        }
        return most
    }

    /// Writes a record, one write after the other, until each of some other connections has the reply to its request.
    ///
    /// - Returns: how many writes there have been.
    private func writes(of id: String, in collection: String, whileAwaiting others: [Connection]) throws -> Int {
        var awaiting = others
        var count = 0
        while !awaiting.isEmpty {
            #expect(try upsert(collection, id, "\(count)").result != nil)
            count += 1
            let replied = try awaiting.filter { try $0.hasSomethingToRead() }
            for connection in replied { #expect(try connection.receive().result != nil) }
            awaiting.removeAll { connection in replied.contains { $0 === connection } }
        }
        return count
    }
}
