import CRUDJSON
import CRUDModel
import CRUDWire

/// The dump of one collection, page by page. Ids and items are copied from the replies as they are.
struct CollectionDump {
    let client: Client
    let name: String
    let filter: [UInt8]?

    /// How many ids of corrupt records a message names.
    private static let maximumNamed = 5

    private(set) var records = 0
    /// The first ids of records that cannot be decoded, as JSON text, and how many ids there were.
    private var corrupt: (first: [String], count: Int) = ([], 0)

    init(client: Client, name: String, filter: [UInt8]?) {
        self.client = client
        self.name = name
        self.filter = filter
    }

    /// Prints the dump.
    ///
    /// - Returns: the error of records that cannot be decoded, which are not in the dump.
    mutating func run() async throws -> CRUDError? {
        let display = ProgressDisplay.onTerminal(besidesOutput: true)
        defer { display?.end() }
        let description = try await call("collection.describe")
        guard let format = description.value("format") else { throw Self.malformed }
        var total = description.integer("count")
        if filter != nil {
            total = display == nil ? nil : try await call("record.count") { write(filter, to: &$0) }.integer("count")
        }
        try writeHeader(format)
        var cursor: String?
        repeat {
            let page = try await call("record.query") { params in
                write(filter, to: &params)
                if let cursor { params.member("cursor", cursor) }
            }
            guard let list = page.elements("records") else { throw Self.malformed }
            try write(list)
            note(corrupt: page.elements("corrupt") ?? [])
            cursor = page.string("cursor")
            display?.show([ProgressLine(name: name, phase: "dumping", records: records, total: total)])
        } while cursor != nil
        var trailer = JSONWriter()
        trailer.object { $0.member("count", records) }
        try StandardOutput.write(trailer.bytes + [UInt8(ascii: "\n")])
        return corrupt.count > 0 ? corruptRecords : nil
    }

    private mutating func note(corrupt ids: [ArraySlice<UInt8>]) {
        let named = ids.prefix(Self.maximumNamed - corrupt.first.count).map { String(decoding: $0, as: UTF8.self) }
        corrupt = (corrupt.first + named, corrupt.count + ids.count)
    }

    private func call(_ method: String, _ members: (inout JSONWriter) -> Void = { _ in }) async throws -> ResultObject {
        var params = JSONWriter()
        params.object { params in
            params.member("collection", name)
            members(&params)
        }
        guard let result = ResultObject(try await client.call(method, json: params.bytes)) else { throw Self.malformed }
        return result
    }

    private func write(_ filter: [UInt8]?, to params: inout JSONWriter) {
        guard let filter else { return }
        params.key("filter")
        params.raw(filter)
    }

    private func writeHeader(_ format: ArraySlice<UInt8>) throws {
        var header = JSONWriter()
        header.object { header in
            header.member("crudd", "dump")
            header.member("version", DumpLine.version)
            header.member("collection", name)
            header.key("format")
            header.raw(format)
        }
        try StandardOutput.write(header.bytes + [UInt8(ascii: "\n")])
    }

    private mutating func write(_ list: [ArraySlice<UInt8>]) throws {
        var text: [UInt8] = []
        for record in list {
            guard let record = ResultObject(Array(record)), let id = record.value("id"), let item = record.value("item")
            else { throw Self.malformed }
            text += #"{"id":"#.utf8
            text += id
            text += #","item":"#.utf8
            // A line end in valid JSON text is insignificant white space, and so is a space in its place.
            text += item.contains(Self.lineEnd) ? item.map { $0 == Self.lineEnd ? UInt8(ascii: " ") : $0 } : Array(item)
            if let expiry = record.value("expiresAt") {
                text += #","expiresAt":"#.utf8
                text += expiry
            }
            text += "}\n".utf8
        }
        try StandardOutput.write(text)
        records += list.count
    }

    private static let lineEnd = UInt8(ascii: "\n")
    private static let malformed = CRUDError(.internalError, "the daemon's reply lacks a required member")

    private var corruptRecords: CRUDError {
        let others = corrupt.count > corrupt.first.count ? " and others" : ""
        return CRUDError(
            .corrupt,
            "records of \(quoted(name.utf8)) that cannot be decoded are not in the dump: "
                + corrupt.first.joined(separator: ", ") + others)
    }
}
