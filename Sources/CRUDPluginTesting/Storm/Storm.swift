import CRUDPluginABI

#if canImport(Glibc)
import Glibc
#endif

/// Writes that go on until the process is killed, and what must be there afterwards.
///
/// Batch n puts `a`, one of `k0` to `k9` by the last digit of n, and `b`, all with revision n and an item that tells n by
/// its size as well. It is said on standard output once it has been answered.
package enum Storm {
    private static let slots = 10

    /// Writes batches from `first` on; it ends when the process does.
    package static func write(
        _ plugin: ExportedPlugin, options: String, format: String, collection name: String, from first: Int
    ) throws(CallFault) -> Never {
        let backend = try PluginBackend(plugin, options: options)
        let isAtomic = backend.capabilities & UInt64(CRUDD_HAS_TRANSACTIONS) != 0
        let collection = try backend.open(name, format: format)
        var number = first
        while true {
            let ids = ["a", "k\(number % slots)", "b"]
            let outcomes = try backend.write(
                ids.map { .put($0, bytes: item(number, format), revision: "\(number)", in: collection) },
                isAtomic: isAtomic)
            for outcome in outcomes where outcome != .created && outcome != .replaced {
                throw .breach("a put of the storm came to \(outcome)")
            }
            let line = Array("\(number)\n".utf8)
            guard unsafe line.withUnsafeBytes({ Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }) > 0 else {
                exit(1)
            }
            number += 1
        }
    }

    private static func item(_ number: Int, _ format: String) -> [UInt8] {
        Sample.item(number, format, padding: number * 37 % 5000)
    }

    /// Looks at what a killed storm has left, and answers the last batch that is there whole; nil: nothing at all.
    static func last(in backend: PluginBackend, answered: Int, _ trial: Trial) throws(CallFault) -> Int? {
        let isDurable = backend.capabilities & UInt64(CRUDD_IS_DURABLE) != 0
        let name = trial.name("storm")
        let isThere = try backend.collections().contains(name)
        guard isDurable || isThere else { return nil }
        let collection = try backend.open(name, format: trial.format, creates: false)
        var numbers: [String: Int] = [:]
        for record in try backend.reader().scan(collection) {
            let number = Int(record.revision) ?? -1
            trial.expect(
                record.bytes == item(number, trial.format),
                "record \(record.id) has the item of another write than its revision, \(number)")
            numbers[record.id] = number
        }
        let (a, b) = (numbers["a"] ?? 0, numbers["b"] ?? 0)
        if backend.capabilities & UInt64(CRUDD_HAS_TRANSACTIONS) != 0 {
            trial.expect(a, is: b, "the last record of the last atomic batch, by its first")
        }
        guard isDurable else { return min(a, b) }
        trial.expect(min(a, b) >= answered, "batch \(answered) was answered before the kill, \(min(a, b)) is there")
        for number in max(1, answered - slots + 1)..<(answered + 1) {
            trial.expect(
                (numbers["k\(number % slots)"] ?? 0) >= number,
                "record k\(number % slots) of batch \(number), which was answered before the kill, is gone or older")
        }
        return min(a, b)
    }
}
