import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPlacement
import CRUDStorage
import Glibc

/// The result of `collection.list`: the collections that the configuration names, and those that exist because of a
/// glob, by name. There may be ten thousand, so that the text is kept, and of it only what differs is made again.
final class CollectionList {
    private let loop: LoopState
    private var known: [Known] = []
    /// The names that the configuration has, in the order of their bytes.
    private var configured: [[UInt8]] = []
    /// To whose configuration all of that belongs.
    private weak var service: Service?

    /// What the sessions of one user get.
    private struct Known {
        let uid: uid_t
        let groups: [gid_t]
        var listing: NameListing
    }

    /// For how many users a list is kept.
    private static let maximumKnown = 16

    init(_ loop: LoopState) {
        self.loop = loop
    }

    func listing(for session: Session) -> NameListing {
        let service = loop.service
        follow(service)
        let peer = session.peer
        var listing = NameListing()
        if let index = known.firstIndex(where: { $0.uid == peer.uid && $0.groups == peer.groups }) {
            listing = known.remove(at: index).listing
        } else if known.count == Self.maximumKnown {
            known.removeFirst()
        }
        let (authority, visits) = (session.authority, listing.visits)
        listing.follow(service.control.catalog.names, others: configured) { name, list in
            guard authority.permissions(forName: name.span).contains(.read),
                let rule = service.rules.rule(for: name.span)
            else { return }
            let place = service.control.serving(name, rule).place
            list.object { rule.placing(in: place).describe(name, to: &$0) }
        }
        session.spend(listing.visits - visits)
        known.append(Known(uid: peer.uid, groups: peer.groups, listing: listing))
        return listing
    }

    private func follow(_ service: Service) {
        guard self.service !== service else { return }
        self.service = service
        known = []
        configured = service.rules.rules.filter { !$0.pattern.isGlob }.map(\.pattern.literal)
            .sorted { $0.lexicographicallyPrecedes($1) }
    }
}

extension NameListing {
    fileprivate static let key: StaticString = #"{"collections":["#
    fileprivate static let end: StaticString = "]}"

    /// The length of the result.
    var byteCount: Int {
        texts.reduce(Self.key.utf8CodeUnitCount + Self.end.utf8CodeUnitCount) { $0 + $1.count + 1 }
    }

    /// Appends the result.
    func append(to output: inout StreamBuffer) {
        output.append(Self.key)
        for (index, text) in texts.enumerated() {
            if index > 0 { output.append(UInt8(ascii: ",")) }
            output.append(text.span)
        }
        output.append(Self.end)
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
        let listing = list.listing(for: session)
        reply { listing.append(to: &$0) }
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
