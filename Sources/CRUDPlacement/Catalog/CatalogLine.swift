import CRUDJSON
import CRUDModel

/// How a record is written as one line: `crc SP json LF`, where crc is the CRC-32C of the bytes of json as eight
/// hexadecimal digits.
///
///     first  = {"catalog":2}
///     record = {"collections":[entry,…]?,"storages":{BACKEND:storage}?}
///     storage = {"identity":I,"at":LOCATION?,"unsurveyed":true?} | {}      the storage is forgotten
///     entry  = {"name":N}                                                  the entry ends
///            | {"name":N,"state":S,"at":place?,"to":place?,"originals":[place,…]?,"obsolete":[place,…]?,
///                "owner":UID?,"begins_feed":true?}
///     place  = {"backend":B,"format":F}
enum CatalogLine {
    static let version = 2

    /// The first line of a file.
    static var first: [UInt8] {
        var writer = JSONWriter()
        writer.object { $0.member("catalog", version) }
        return line(writer.bytes)
    }

    static func bytes(of record: CatalogRecord) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { object in
            if !record.collections.isEmpty {
                object.key("collections")
                object.array { entries in
                    for (name, placement) in record.collections { entries.write(name, placement) }
                }
            }
            if !record.storages.isEmpty {
                object.key("storages")
                object.object { storages in
                    for (backend, storage) in record.storages.sorted(by: { $0.key < $1.key }) {
                        storages.key(backend)
                        storages.object { object in
                            if storage.isNothing { return }
                            object.member("identity", storage.identity)
                            if let location = storage.location { object.member("at", location) }
                            if storage.isUnsurveyed { object.member("unsurveyed", true) }
                        }
                    }
                }
            }
        }
        return line(writer.bytes)
    }

    private static func line(_ json: [UInt8]) -> [UInt8] {
        let digits = String(CRC32C.checksum(of: json), radix: 16)
        return Array(String(repeating: "0", count: 8 - digits.count).utf8) + Array(digits.utf8) + [0x20] + json + [0x0A]
    }

    /// The JSON text of a line.
    ///
    /// - Parameter line: without its LF.
    /// - Returns: nil where the checksum differs.
    static func json(of line: ArraySlice<UInt8>) -> [UInt8]? {
        guard line.count > 9, line[line.startIndex + 8] == 0x20,
            let checksum = UInt32(String(decoding: line.prefix(8), as: UTF8.self), radix: 16)
        else { return nil }
        let json = Array(line.dropFirst(9))
        return CRC32C.checksum(of: json) == checksum ? json : nil
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ name: [UInt8], _ placement: Placement) {
        object { entry in
            entry.key("name")
            entry.string(utf8: name)
            if placement.isNothing { return }
            entry.member("state", placement.state.name)
            if let place = placement.authority { entry.write("at", place) }
            if let place = placement.destination { entry.write("to", place) }
            entry.write("originals", placement.originals)
            entry.write("obsolete", placement.obsolete)
            if let owner = placement.owner { entry.member("owner", owner) }
            if placement.beginsFeed { entry.member("begins_feed", true) }
        }
    }

    private mutating func write(_ key: String, _ place: CollectionPlace) {
        self.key(key)
        object { $0.members(of: place) }
    }

    private mutating func write(_ key: String, _ places: [CollectionPlace]) {
        guard !places.isEmpty else { return }
        self.key(key)
        array { array in
            for place in places { array.object { $0.members(of: place) } }
        }
    }
}

extension Placement.State {
    /// What the file calls it.
    package var name: String {
        switch self {
        case .absent: "absent"
        case .resident: "resident"
        case .planned: "planned"
        case .copying: "copying"
        }
    }

    /// - Returns: nil where the places do not go with the name.
    init?(name: String, at place: CollectionPlace?, to next: CollectionPlace?) {
        switch (name, place, next) {
        case ("absent", nil, nil): self = .absent
        case ("resident", let place?, nil): self = .resident(place)
        case ("planned", let place?, let next?): self = .planned(place, to: next)
        case ("copying", let place?, let next?): self = .copying(place, to: next)
        default: return nil
        }
    }
}
