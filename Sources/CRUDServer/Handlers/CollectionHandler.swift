import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPlacement
import CRUDPluginHost
import CRUDStorage
import CRUDWire

/// The methods of collections: `collection.list`, `describe`, `drop` and `reindex`.
final class CollectionHandler {
    private let list: CollectionList

    init(_ loop: LoopState) {
        list = CollectionList(loop)
    }

    func list(_ call: borrowing Call) {
        let listing = list.listing(for: call.session)
        if call.array != nil || call.session.hasRoom(for: listing.byteCount) {
            call.reply { listing.append(to: &$0) }
        } else {
            let pending = PendingList(call, list)
            pending.start()
            pending.awaitRoom(for: listing.byteCount)
        }
    }

    func describe(_ call: borrowing Call, _ collection: Collection) {
        guard call.wantsReply else { return call.skip() }
        // Now, while the collection is not quiesced, the loop serves it from where the catalog says that it is.
        let place = collection.describePlace(call.session.loop.service.control)
        guard collection.closedReason == nil else {
            return call.reply { $0.append(collection.describe(place, count: nil).span) }
        }
        let pending = PendingDescription(call, collection, place)
        guard call.isTrue(.sizes) else { return pending.submit(countWithPrefix: [], in: collection) }
        pending.start()
        collection.client.submit(SizeTask(on: collection.stored, deliver: collection.client.deliver), for: pending)
    }

    func drop(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        let isOfOriginals = call.isTrue(.moved)
        guard !isOfOriginals || !call.isTrue(.ifEmpty) else { throw Parameter.moved.invalid("goes without `ifEmpty`") }
        let pending = PendingDrop(call, of: collection, isOfOriginals: isOfOriginals)
        pending.start()
        let client = collection.client
        let request = DropRequest(
            of: collection.name, requiresEmpty: call.isTrue(.ifEmpty), isOfOriginals: isOfOriginals,
            deliver: client.deliver)
        client.track(request, for: pending)
        call.session.loop.service.control.drop(request)
    }

    func reindex(_ call: borrowing Call, _ collection: Collection) {
        let pending = PendingReindex(call, .slicedWrite, on: collection)
        pending.start()
        collection.client.submit(
            ReindexRequest(of: collection.stored, deliver: collection.client.deliver), for: pending)
    }
}

/// A `collection.describe` in flight: its records are being counted. Where they are is of the moment in which it began:
/// when the count is there the collection may have moved.
private final class PendingDescription: PendingRead {
    private let place: [UInt8]
    private let isForAdministrator: Bool

    /// - Parameter place: what ``Collection/describePlace(_:)`` has returned.
    init(_ call: borrowing Call, _ collection: Collection, _ place: [UInt8]) {
        self.place = place
        isForAdministrator = call.session.authority.isAdmin
        super.init(call, .scan, on: collection)
    }

    override func append(_ count: Int, to output: inout StreamBuffer) {
        guard let collection else { return }
        output.append(collection.describe(place, count: count, withReasons: isForAdministrator).span)
    }

    override func reply(with result: WorkResult) {
        guard case .size(let task) = result, let collection else { return super.reply(with: result) }
        let text = collection.describe(place, count: task.count, withReasons: isForAdministrator) { description in
            description.member("bytes", task.bytes)
            description.member("estimated", task.isEstimate)
        }
        reply { $0.append(text.span) }
    }
}

/// A `collection.drop` in flight.
private final class PendingDrop: PendingRequest {
    private let isOfOriginals: Bool

    init(_ call: borrowing Call, of collection: Collection, isOfOriginals: Bool) {
        self.isOfOriginals = isOfOriginals
        super.init(call, .slicedWrite, on: collection)
    }

    override var audit: AuditEntry.Details? { .init(subject: isOfOriginals ? "of what moves have left" : nil) }

    override func reply(with result: WorkResult) {
        guard case .dropped(let request) = result else { return super.reply(with: result) }
        reply { output in
            output.appendObject { result in
                result.member("dropped", request.outcome.wasThere)
                let removing = request.outcome.removing
                guard !removing.isEmpty else { return }
                result.member("removing", objects: removing) { removal, members in
                    members.members(of: removal.place)
                    if let reason = removal.reason { members.member("reason", reason) }
                }
            }
        }
    }
}

/// A `collection.reindex` in flight.
private final class PendingReindex: PendingRequest {
    override var audit: AuditEntry.Details? { .init() }

    override func reply(with result: WorkResult) {
        guard case .done = result else { return super.reply(with: result) }
        reply { $0.append("{}") }
    }
}

extension Collection {
    /// A JSON object of what the file and the catalog say about the collection.
    fileprivate func describePlace(_ control: PlacementControl) -> [UInt8] {
        var description = JSONWriter()
        description.object { description in
            rule.describe(name, to: &description)
            description.key("changes")
            if let retention = rule.changes?.retention {
                description.object { $0.member("retention", retention.components.seconds) }
            } else {
                description.raw("false".utf8)
            }
            control.describe(name, to: &description)
        }
        return description.bytes
    }

    /// - Parameters:
    ///   - place: what ``describePlace(_:)`` has returned.
    ///   - count: nil where the collection is closed.
    ///   - withReasons: whether to show a plugin's words.
    ///   - more: writes further members.
    /// - Returns: those members, and what is known once it has been opened.
    fileprivate func describe(
        _ place: [UInt8], count: Int?, withReasons: Bool = false, and more: (inout JSONWriter) -> Void = { _ in }
    ) -> [UInt8] {
        var description = JSONWriter()
        description.object { description in
            description.member("capabilities", strings: backend.capabilities.names)
            describeIndexing(to: &description, withReasons: withReasons)
            if let count { description.member("count", count) }
            more(&description)
        }
        return Array(place.dropLast()) + [UInt8(ascii: ",")] + description.bytes.dropFirst()
    }

    /// The progress of the indexes that are being built; nothing where there are none.
    fileprivate func describeIndexing(to description: inout JSONWriter, withReasons: Bool) {
        let progress = stored.indexProgress
        guard !progress.isEmpty else { return }
        description.member("indexing", objects: progress) { index, members in
            members.member("property", index.property)
            members.member("state", "building")
            members.member("indexed", index.indexed)
            members.member("total", index.total)
            if withReasons, let reason = index.reason { members.member("reason", reason) }
        }
    }
}
