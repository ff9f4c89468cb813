import CRUDJSON
import Glibc

/// Operations of a load that are sent in one request.
struct LoadBatch {
    /// The line of each operation.
    private(set) var lines: [Int] = []
    private var operations: [UInt8] = []

    /// More would not be faster, and more outcomes would be unknown if the connection were lost.
    private static let maximumBytes = 1 << 20
    /// The most bytes of an operation besides its id, its item and its collection's name.
    private static let operationBytes = 100

    /// Whether another record can be added.
    ///
    /// A record that is longer than any request may be is sent alone, and refused by the client.
    func hasRoom(for record: DumpRecord, in collection: [UInt8], _ limits: DaemonLimits) -> Bool {
        let bytes = operations.count + record.text.count + collection.count + Self.operationBytes
        return lines.isEmpty
            || lines.count < limits.batchOperations
                && bytes <= min(Self.maximumBytes, limits.frameBytes / 2)
    }

    /// - Parameter collection: its name as JSON text.
    mutating func append(_ record: DumpRecord, line: Int, as action: String, in collection: [UInt8]) {
        if !lines.isEmpty { operations.append(UInt8(ascii: ",")) }
        lines.append(line)
        operations += #"{"op":"\#(action)","collection":"#.utf8
        operations += collection
        operations += #","id":"#.utf8
        operations += record.text[record.id.range]
        operations += #","item":"#.utf8
        operations += record.text[record.item.range]
        if let instant = record.expiresAt { operations += #","expiresAt":\#(instant)"#.utf8 }
        operations.append(UInt8(ascii: "}"))
    }

    /// The `params` of `record.batch`.
    func params(isAtomic: Bool) -> [UInt8] {
        Array(#"{"operations":["#.utf8) + operations + Array((isAtomic ? #"],"atomic":true}"# : "]}").utf8)
    }
}
