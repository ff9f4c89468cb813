import CRUDJSON
import CRUDModel

/// Reads the records of a catalog's file, of this version and of the one before.
struct CatalogReader {
    /// Why a text with the right checksum is not a record: a newer crudd has written it, or a program that is not
    /// crudd.
    struct UnknownText: Error {}

    /// The members of one object that crudd has written.
    private struct Members {
        var strings: [String: [UInt8]] = [:]
        var numbers: [String: String] = [:]
        var objects: [String: Members] = [:]
        var arrays: [String: [Members]] = [:]

        func string(_ key: String) -> String? { strings[key].map { String(decoding: $0, as: UTF8.self) } }

        /// Every key.
        var keys: Set<String> {
            Set(strings.keys).union(numbers.keys).union(objects.keys).union(arrays.keys)
        }
    }

    // MARK: Version 2

    /// Whether a text is the first line of a file of this version.
    static func isFirst(_ json: [UInt8]) throws(UnknownText) -> Bool {
        let members = try members(of: json)
        guard members.keys == ["catalog"] else { throw UnknownText() }
        return members.numbers["catalog"] == String(CatalogLine.version)
    }

    static func record(_ json: [UInt8]) throws(UnknownText) -> CatalogRecord {
        let members = try members(of: json)
        var record = CatalogRecord()
        guard members.keys.isSubset(of: ["collections", "storages"]) else { throw UnknownText() }
        for entry in members.arrays["collections"] ?? [] { record.collections.append(try collection(entry)) }
        let storages = members.objects["storages"] ?? Members()
        guard storages.keys.count == storages.objects.count else { throw UnknownText() }
        for (backend, members) in storages.objects { record.storages[backend] = try storage(members) }
        return record
    }

    private static func storage(_ members: Members) throws(UnknownText) -> CatalogStorage {
        if members.keys.isEmpty { return .forgotten }
        guard members.keys.isSubset(of: ["identity", "at", "unsurveyed"]), let identity = members.string("identity"),
            !identity.isEmpty, [nil, "true"].contains(members.numbers["unsurveyed"])
        else { throw UnknownText() }
        return CatalogStorage(
            identity, at: members.string("at"), isUnsurveyed: members.numbers["unsurveyed"] != nil)
    }

    private static func collection(_ entry: Members) throws(UnknownText) -> (name: [UInt8], placement: Placement) {
        guard let name = entry.strings["name"] else { throw UnknownText() }
        if entry.keys == ["name"] { return (name, .none) }
        guard entry.keys.isSubset(of: ["name", "state", "at", "to", "originals", "obsolete", "owner", "begins_feed"]),
            [nil, "true"].contains(entry.numbers["begins_feed"]),
            let state = try Placement.State(
                name: entry.string("state") ?? "", at: optionalPlace(entry.objects["at"]),
                to: optionalPlace(entry.objects["to"]))
        else { throw UnknownText() }
        let placement = Placement(
            state, originals: try places(entry.arrays["originals"]), obsolete: try places(entry.arrays["obsolete"]),
            owner: entry.numbers["owner"].flatMap { UInt32($0) }, beginsFeed: entry.numbers["begins_feed"] != nil)
        guard placement.isValid, entry.keys.contains("owner") == (placement.owner != nil),
            entry.keys.contains("begins_feed") == placement.beginsFeed
        else { throw UnknownText() }
        return (name, placement)
    }

    private static func optionalPlace(_ members: Members?) throws(UnknownText) -> CollectionPlace? {
        guard let members else { return nil }
        return try place(members)
    }

    private static func place(_ members: Members) throws(UnknownText) -> CollectionPlace {
        guard members.keys == ["backend", "format"], let place = location(members) else { throw UnknownText() }
        return place
    }

    private static func places(_ array: [Members]?) throws(UnknownText) -> [CollectionPlace] {
        var places: [CollectionPlace] = []
        for members in array ?? [] { places.append(try place(members)) }
        return places
    }

    private static func location(_ members: Members) -> CollectionPlace? {
        guard let backend = members.string("backend"),
            let format = members.string("format").flatMap(CollectionRule.Format.init)
        else { return nil }
        return CollectionPlace(backend: backend, format: format)
    }

    // MARK: Version 1

    /// A line of the first version: `{"name":…,"backend":…,"format":…,"move":{"state":…,…}?,"originals":[…]?}`, or the
    /// name alone where the collection has ended.
    static func recordOfVersion1(_ json: [UInt8]) throws(UnknownText) -> CatalogRecord {
        let members = try members(of: json)
        guard let name = members.strings["name"] else { throw UnknownText() }
        guard let place = location(members) else {
            guard members.keys == ["name"] else { throw UnknownText() }
            return CatalogRecord(collections: [(name, .none)])
        }
        var placement = Placement(.resident(place))
        for original in try places(members.arrays["originals"]) where original != place {
            if !placement.originals.contains(original) { placement.originals.append(original) }
        }
        if let move = members.objects["move"] {
            guard let next = location(move), next != place else { throw UnknownText() }
            placement.originals.removeAll { $0 == next }
            switch move.string("state") {
            case "planned": placement.state = .planned(place, to: next)
            case "copying": placement.state = .copying(place, to: next)
            case "removing": placement.obsolete = [next]
            default: throw UnknownText()
            }
        }
        return CatalogRecord(collections: [(name, placement)])
    }

    // MARK: JSON

    private static func members(of json: [UInt8]) throws(UnknownText) -> Members {
        let text = json.span
        var scanner = JSONScanner()
        do throws(JSONSyntaxError) {
            if try scanner.peekKind(text) == .object {
                let members = try members(text, &scanner)
                try scanner.expectEnd(text)
                return members
            }
        } catch {
            throw UnknownText()
        }
        throw UnknownText()
    }

    private static func members(
        _ text: Span<UInt8>, _ scanner: inout JSONScanner
    ) throws(JSONSyntaxError) -> Members {
        var members = Members()
        scanner.enter()
        var isFirst = true
        while let slice = try scanner.nextKey(text, isFirst: &isFirst) {
            let key = String(decoding: slice.decodedString(text), as: UTF8.self)
            switch try scanner.peekKind(text) {
            case .object: members.objects[key] = try Self.members(text, &scanner)
            case .array: members.arrays[key] = try elements(text, &scanner)
            case .string: members.strings[key] = try scanner.value(text).decodedString(text)
            case .number, .true, .false, .null:
                let value = try scanner.value(text)
                members.numbers[key] = String(decoding: json(text, value), as: UTF8.self)
            }
        }
        return members
    }

    /// The elements of an array, which are objects; an empty object stands for another value, which crudd never writes.
    private static func elements(
        _ text: Span<UInt8>, _ scanner: inout JSONScanner
    ) throws(JSONSyntaxError) -> [Members] {
        var elements: [Members] = []
        scanner.enter()
        var isFirst = true
        while try scanner.nextElement(text, isFirst: &isFirst) {
            if try scanner.peekKind(text) == .object {
                elements.append(try members(text, &scanner))
            } else {
                _ = try scanner.value(text)
                elements.append(Members())
            }
        }
        return elements
    }

    private static func json(_ text: Span<UInt8>, _ slice: JSONSlice) -> [UInt8] {
        slice.range.map { text[$0] }
    }
}
