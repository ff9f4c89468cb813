import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPlacement
import CRUDStorage
import Glibc

/// The result of `collection.list`: the collections that the configuration names, and those that exist because of a
/// glob, by name. There may be ten thousand, so that the text is kept until it would differ.
final class CollectionList {
    private let loop: LoopState
    private var known: [Known] = []

    /// What the sessions of one user get.
    private struct Known {
        let uid: uid_t
        let groups: [gid_t]
        let version: UInt64
        let text: [UInt8]
        weak var service: Service?
    }

    /// For how many users a list is kept.
    private static let maximumKnown = 16

    init(_ loop: LoopState) {
        self.loop = loop
    }

    func text(for session: Session) -> [UInt8] {
        let service = loop.service
        let names = service.control.catalog.names
        let peer = session.peer
        known.removeAll { $0.version != names.version || $0.service !== service }
        if let known = known.first(where: { $0.uid == peer.uid && $0.groups == peer.groups }) { return known.text }
        session.spend(names.sorted.count)
        let text = text(of: names.sorted, session.authority, service)
        if known.count == Self.maximumKnown { known.removeFirst() }
        known.append(
            Known(uid: peer.uid, groups: peer.groups, version: names.version, text: text, service: service))
        return text
    }

    private func text(of existing: [[UInt8]], _ authority: Authority, _ service: Service) -> [UInt8] {
        let rules = service.rules
        var configured = rules.rules.filter { !$0.pattern.isGlob }.map(\.pattern.literal)
            .sorted { $0.lexicographicallyPrecedes($1) }[...]
        var writer = JSONWriter()
        func write(_ name: [UInt8], to list: inout JSONWriter) {
            guard authority.permissions(forName: name.span).contains(.read), let rule = rules.rule(for: name.span)
            else { return }
            let place = service.control.serving(name, rule).place
            list.object { rule.placing(in: place).describe(name, to: &$0) }
        }
        writer.object { result in
            result.key("collections")
            result.array { list in
                for name in existing {
                    while let first = configured.first, first.lexicographicallyPrecedes(name) {
                        write(configured.removeFirst(), to: &list)
                    }
                    if configured.first == name { configured.removeFirst() }
                    write(name, to: &list)
                }
                for name in configured { write(name, to: &list) }
            }
        }
        return writer.bytes
    }
}

/// A `collection.list` that waits for room for its reply.
final class PendingList: PendingRequest {
    private let list: CollectionList

    init(_ call: borrowing Call, _ list: CollectionList) {
        self.list = list
        super.init(call, .read, on: nil)
    }

    override func submitAgain(withRoomFor bytes: Int) {
        let text = list.text(for: session)
        reply { $0.append(text.span) }
        hasReplied()
        ended()
    }
}

extension CollectionRule {
    /// Describes a collection that the rule maps.
    func describe(_ name: [UInt8], to description: inout JSONWriter) {
        description.key("name")
        description.string(utf8: name)
        description.member("backend", backend)
        description.member("format", format.rawValue)
        description.member("indexes", strings: indexes)
    }
}
