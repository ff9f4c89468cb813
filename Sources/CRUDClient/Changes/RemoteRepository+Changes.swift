import CRUDJSON
import CRUDModel
import CRUDWire

extension RemoteRepository {
    public func changes(_ query: ChangeQuery) async throws -> ChangePage {
        // A deadline is one task's own, and from "now" on each task sees its own moment.
        guard query.wait != .zero, query.after.text != Cursor.now.text, CRUDClient.deadline == nil else {
            return try await page(query)
        }
        var params = JSONWriter()
        params.object { params in
            params.member("collection", collection)
            Self.write(query, to: &params)
        }
        // The client outlives its requests by the tasks that wait for them.
        return try await client.polls.page(of: params.bytes) { try await page(query) }
    }

    private func page(_ query: ChangeQuery) async throws -> ChangePage {
        let result = try await call(.changes, waiting: query.wait) { Self.write(query, to: &$0) }
        guard let changes = result.elements("changes"), let cursor = result.string("cursor") else {
            throw CRUDError.malformed(.changes)
        }
        let bareItem = EncodedItem.bare(query.fields)
        return ChangePage(
            changes: try changes.map { try Change.Kind(ResultObject(Array($0)), bareItem: bareItem) },
            cursor: Cursor(cursor), hasMore: result.bool("more") ?? false, corrupt: result.strings("corrupt") ?? [])
    }

    private static func write(_ query: ChangeQuery, to params: inout JSONWriter) {
        params.member("after", query.after.text)
        params.selection(query.selection)
        if let fields = query.fields { params.member("fields", strings: fields.map(\.text)) }
        if let limit = query.limit { params.member("limit", limit) }
        if query.wait != .zero {
            params.key("wait")
            params.raw(query.wait.secondsText.utf8)
        }
    }
}

extension Change<EncodedItem>.Kind {
    /// The change that is an element of `changes`.
    ///
    /// - Parameter bareItem: the item of a record that was written, where the element has none; nil: it has one.
    fileprivate init(_ object: ResultObject?, bareItem: EncodedItem?) throws {
        guard let object, let id = object.string("id") else { throw CRUDError.malformed(.changes) }
        if object.bool("deleted") == true {
            self = .removed(id)
        } else if object.bool("matches") == false {
            self = .unmatched(id)
        } else if let item = object.value("item") ?? bareItem?.bytes[...], let revision = object.string("revision") {
            self = .saved(
                Versioned(
                    id: id, item: EncodedItem(bytes: Array(item)), revision: Revision(revision),
                    expiresAt: object.integer("expiresAt")))
        } else {
            throw CRUDError.malformed(.changes)
        }
    }
}
