/// The record methods. Items are JSON text, ids and names plain strings.
extension Connection {
    package func create(_ collection: String, _ id: String, _ item: String) throws -> Reply {
        try call("record.create", Self.params(collection, id, item: item))
    }

    package func read(_ collection: String, _ id: String, fields: String? = nil) throws -> Reply {
        try call("record.read", Self.params(collection, id, more: fields.map { ["fields": $0] } ?? [:]))
    }

    package func update(
        _ collection: String, _ id: String, _ item: String, ifRevision: String? = nil
    ) throws -> Reply {
        try call("record.update", Self.params(collection, id, item: item, ifRevision: ifRevision))
    }

    package func upsert(
        _ collection: String, _ id: String, _ item: String, ifRevision: String? = nil
    ) throws -> Reply {
        try call("record.upsert", Self.params(collection, id, item: item, ifRevision: ifRevision))
    }

    package func delete(_ collection: String, _ id: String, ifRevision: String? = nil) throws -> Reply {
        try call("record.delete", Self.params(collection, id, ifRevision: ifRevision))
    }

    package func exists(_ collection: String, _ id: String) throws -> Bool? {
        try call("record.exists", Self.params(collection, id)).result?["exists"]?.boolean
    }

    package func readMany(_ collection: String, _ ids: [String]) throws -> Reply {
        let list = ids.map(JSON.quote).joined(separator: ",")
        return try call("record.readMany", #"{"collection":\#(JSON.quote(collection)),"ids":[\#(list)]}"#)
    }

    /// The stored item's text; nil if there is no such record.
    package func item(_ collection: String, _ id: String) throws -> String? {
        let reply = try read(collection, id)
        if reply.error?.name == "record_not_found" { return nil }
        guard let item = reply.result?["item"] else { throw Failure("no item: \(reply)") }
        return item.text
    }

    /// `params` of a record method; `more` is JSON text by member.
    package static func params(
        _ collection: String, _ id: String, item: String? = nil, ifRevision: String? = nil,
        more: [String: String] = [:]
    ) -> String {
        var members = [#""collection":\#(JSON.quote(collection))"#, #""id":\#(JSON.quote(id))"#]
        if let item { members.append(#""item":\#(item)"#) }
        if let ifRevision { members.append(#""ifRevision":\#(JSON.quote(ifRevision))"#) }
        members += more.map { #""\#($0)":\#($1)"# }
        return "{\(members.joined(separator: ","))}"
    }
}
