import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDWire

/// The methods of collections: `collection.list`, `describe`, `drop` and `reindex`.
final class CollectionHandler {
    private let loop: LoopState
    private let collections: CollectionDirectory

    init(_ loop: LoopState, _ collections: CollectionDirectory) {
        self.loop = loop
        self.collections = collections
    }

    /// Lists the collections that the configuration names, and those that exist because of a glob, by name.
    func list(_ call: borrowing Call) {
        let service = loop.service
        var names = Set(service.catalog.entries.map(\.name))
        for rule in service.configuration.collections.rules where !rule.pattern.isGlob {
            names.insert(rule.pattern.literal)
        }
        let readable = names.sorted { $0.lexicographicallyPrecedes($1) }
            .compactMap { collections.readable($0, for: call.session) }
        call.reply { output in
            output.appendObject { $0.member("collections", objects: readable) { $0.describe(to: &$1) } }
        }
    }

    func describe(_ call: borrowing Call, _ collection: Collection) {
        guard call.wantsReply else { return }
        PendingDescription(call, .read, on: collection).submit(countWithPrefix: [], in: collection)
    }

    func drop(_ call: borrowing Call, _ collection: Collection) {
        let pending = PendingDrop(call, .bulkDelete, on: collection)
        pending.start()
        let client = collection.client
        let request = DropRequest(
            of: collection.name, requiresEmpty: call.isTrue(.ifEmpty), deliver: client.deliver)
        client.track(request, for: pending)
        loop.service.drop(request)
    }

    func reindex(_ call: borrowing Call, _ collection: Collection) {
        let pending = PendingReindex(call, .read, on: collection)
        pending.start()
        collection.client.submit(
            ReindexRequest(of: collection.stored, deliver: collection.client.deliver), for: pending)
    }
}

/// A `collection.describe` in flight: its records are being counted.
private final class PendingDescription: PendingRead {
    override func append(_ count: Int, to output: inout StreamBuffer) {
        guard let collection else { return }
        output.appendObject { description in
            collection.describe(to: &description)
            description.member("count", count)
            description.member("capabilities", strings: collection.backend.capabilities.names)
            collection.describeIndexing(to: &description)
        }
    }
}

/// A `collection.drop` in flight.
private final class PendingDrop: PendingRequest {
    override func reply(with item: WorkItem, _ range: Range<Int>) {
        guard let request = item as? DropRequest else { return }
        reply { output in output.appendObject { $0.member("dropped", request.dropped) } }
    }
}

/// A `collection.reindex` in flight.
private final class PendingReindex: PendingRequest {
    override func reply(with item: WorkItem, _ range: Range<Int>) {
        reply { $0.append("{}") }
    }
}

extension Collection {
    fileprivate func describe(to description: inout JSONWriter) {
        description.key("name")
        description.string(utf8: name)
        description.member("backend", backend.name)
        description.member("format", rule.format.rawValue)
        description.member("indexes", strings: rule.indexes)
    }

    /// The progress of the indexes that are being built; nothing where there are none.
    fileprivate func describeIndexing(to description: inout JSONWriter) {
        guard let progress = stored.indexes?.progress, !progress.isEmpty else { return }
        description.member("indexing", objects: progress) { index, members in
            members.member("property", index.property)
            members.member("state", "building")
            members.member("indexed", index.indexed)
            members.member("total", index.total)
        }
    }
}
