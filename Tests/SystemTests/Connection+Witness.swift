import CRUDTestSupport
import Testing

extension Connection {
    /// Writes a record, one write after the other, until each of some other connections has the reply to its request.
    ///
    /// - Returns: how many writes there have been.
    func writes(of id: String, in collection: String, whileAwaiting others: [Connection]) throws -> Int {
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
