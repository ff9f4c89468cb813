import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPlacement

extension PlacementControl {
    /// The members of `daemon.status` about placements.
    func describe(to status: inout JSONWriter) {
        let progress = progress
        status.member("moves", objects: progress.compactMap(\.move)) { move, members in
            members.key("collection")
            members.string(utf8: move.collection)
            move.describe(to: &members)
        }
        status.member("removals", objects: progress.flatMap(\.removals)) { removal, members in
            members.key("collection")
            members.string(utf8: removal.collection)
            removal.describe(to: &members)
        }
        status.key("catalog")
        status.object { members in
            let reason = catalog.doubtReason
            members.member("state", reason == nil ? "ready" : "in doubt")
            if let reason { members.member("reason", reason) }
        }
    }

    /// The members of `collection.describe` about the placement of a collection.
    func describe(_ name: [UInt8], to description: inout JSONWriter) {
        let progress = progress(of: name)
        if let move = progress.move {
            description.key("move")
            description.object { move.describe(to: &$0) }
        }
        if !progress.originals.isEmpty {
            description.member("originals", objects: progress.originals) { place, members in
                members.members(of: place)
            }
        }
        if !progress.removals.isEmpty {
            description.member("removing", objects: progress.removals) { removal, members in
                removal.describe(to: &members)
            }
        }
    }
}

extension MoveProgress {
    /// Where to, and how far it has got.
    fileprivate func describe(to description: inout JSONWriter) {
        description.key("from")
        description.object { $0.members(of: from) }
        description.key("to")
        description.object { $0.members(of: to) }
        description.member("copied", copied)
        description.member("total", total)
        description.member("phase", phase.rawValue)
        if let reason { description.member("reason", reason) }
    }
}

extension RemovalProgress {
    fileprivate func describe(to description: inout JSONWriter) {
        description.members(of: place)
        if let reason { description.member("reason", reason) }
    }
}
