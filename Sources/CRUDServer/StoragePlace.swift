import CLinux
import CRUDConfiguration
import Glibc

/// Where a backend has its storage, as far as its options tell: equal for two that would write to the same.
///
/// An absolute path is what it leads to, however it is spelt and whatever links are on the way. Of one that leads
/// nowhere yet, the part that is there counts, and the names after it.
struct StoragePlace: Hashable {
    private let plugin: String
    /// Those of a command: its file may be an interpreter.
    private let words: [String]
    private let place: Place

    private enum Place: Hashable {
        case value([UInt8])
        case file(device: dev_t, number: ino_t, names: [[UInt8]])
    }

    /// - Parameters:
    ///   - plugin: the path of its file.
    ///   - value: the option that says where the storage is.
    init(_ plugin: String, _ implementation: BackendConfiguration.Implementation, _ value: [UInt8]) {
        self.plugin = plugin
        words = if case .command(let words) = implementation { words } else { [] }
        place = Self.file(at: value) ?? .value(value)
    }

    private static func file(at path: [UInt8]) -> Place? {
        let slash = UInt8(ascii: "/")
        guard path.first == slash, !path.contains(0) else { return nil }
        var existing = path.split(separator: slash).filter { !$0.elementsEqual(".".utf8) }
        var names: [[UInt8]] = []
        var status = stat()
        while stat("/" + String(decoding: Array(existing.joined(separator: [slash])), as: UTF8.self), &status) != 0 {
            guard let last = existing.popLast() else { return nil }
            names.insert(Array(last), at: 0)
        }
        return .file(device: status.st_dev, number: status.st_ino, names: names)
    }
}
