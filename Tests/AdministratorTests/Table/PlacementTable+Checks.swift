import CRUDModel
import CRUDPlacement
import CRUDTestSupport
import Glibc
import Testing

/// What is told and served, compared with the model.
extension PlacementTable {
    /// What an event's reply says.
    func check(
        _ reply: Reply, to event: TableEvent, _ name: String, from former: Placement, _ outcome: Placement.Outcome
    ) {
        let text = "\(situation.testDescription), \(name): \(reply)"
        switch (event.action, outcome) {
        case (.write, _): #expect(reply.result != nil, "\(text)")
        case (.reload, .refused(let refusal)):
            #expect(reply.error?.name == "invalid_configuration", "\(text)")
            #expect(reply.error?.message.hasSuffix("collection \(name) \(refusal.message)") == true, "\(text)")
        case (.reload, .same):
            #expect(Self.names(reply, "moves") == [] && Self.names(reply, "cancelled") == [], "\(text)")
        case (.reload, .to(let next)):
            #expect(Self.names(reply, "moves") == (next.destination == nil ? [] : [name]), "\(text)")
            #expect(Self.names(reply, "cancelled") == (former.destination == nil ? [] : [name]), "\(text)")
        case (.drop, _):
            let wasThere = former.authority != nil || !former.originals.isEmpty
            #expect(reply.result?["dropped"]?.boolean == wasThere, "\(text)")
            checkRemovals(reply, name, former, outcome)
        case (.dropOriginals, _):
            #expect(reply.result?["dropped"]?.boolean == !former.originals.isEmpty, "\(text)")
            checkRemovals(reply, name, former, outcome)
        }
    }

    /// What cannot be removed is told, and nothing that is not to be removed.
    private func checkRemovals(_ reply: Reply, _ name: String, _ former: Placement, _ outcome: Placement.Outcome) {
        let told = Set(Self.places(reply.result?["removing"]))
        let begun = if case .to(let next) = outcome { next.obsolete } else { former.obsolete }
        #expect(
            told.isSuperset(of: placements[name]?.obsolete ?? []) && told.isSubset(of: begun),
            "\(situation.testDescription), \(name): \(reply)")
    }

    /// What the catalog says of a collection, and what is described and served, once that has been reached: acts end
    /// after the reply to what has begun them.
    func check(_ name: String, _ text: String) throws {
        let placement = placements[name] ?? Placement.none
        let deadline = Deadline()
        while true {
            let recorded = try recorded(name)
            // A record is in the file a moment before it is in force.
            if try recorded == placement && description(of: name) == expectedDescription(of: name) { break }
            let about = "\(situation.testDescription), \(name), \(text)"
            try #require(!deadline.hasPassed, "\(about): \(recorded), not \(placement)")
            poll(nil, 0, 5)
        }
        try checkServed(name, text)
    }

    /// What is described and served of a collection now.
    func checkServed(_ name: String, _ text: String) throws {
        let read = try connection.read(name, "1")
        let about = "\(situation.testDescription), \(name), \(text): \(read)"
        let (described, expected) = try (description(of: name), expectedDescription(of: name))
        #expect(described == expected, "\(about)")
        let placement = placements[name] ?? Placement.none
        guard let place = placement.authority ?? wanted[name] else {
            #expect(read.error?.name == "collection_not_found", "\(about)")
            return
        }
        if isClosed(placement, at: place) || down.contains(place.backend) {
            #expect(read.error?.name == "unavailable", "\(about)")
        } else if let item = items[name]?[place] {
            #expect(read.result?["item"]?.text == item, "\(about)")
        } else {
            #expect(read.error?.name == "record_not_found", "\(about)")
        }
    }

    private func isClosed(_ placement: Placement, at place: CollectionPlace) -> Bool {
        placement.beginsFeed
            || placement.authority == nil && (placement.isBlocked(place) || placement.originals.contains(place))
    }

    /// What `collection.describe` tells of a placement.
    private struct Description: Equatable {
        var place: CollectionPlace?
        var source: CollectionPlace?
        var target: CollectionPlace?
        var originals: [CollectionPlace] = []
        var obsolete: [CollectionPlace] = []
    }

    /// - Returns: nil where there is no rule, or the records of a backend that is down would have to be counted.
    private func expectedDescription(of name: String) -> Description? {
        let placement = placements[name] ?? Placement.none
        guard let place = placement.authority ?? wanted[name],
            isClosed(placement, at: place) || !down.contains(place.backend)
        else { return nil }
        return Description(
            place: place, source: placement.destination == nil ? nil : place, target: placement.destination,
            originals: placement.originals, obsolete: placement.obsolete)
    }

    private func description(of name: String) throws -> Description? {
        let reply = try connection.call("collection.describe", #"{"collection":"\#(name)"}"#)
        guard let result = reply.result else { return nil }
        return Description(
            place: Self.place(result), source: Self.place(result["move"]?["from"]),
            target: Self.place(result["move"]?["to"]), originals: Self.places(result["originals"]),
            obsolete: Self.places(result["removing"]))
    }

    private static func names(_ reply: Reply, _ member: String) -> [String]? {
        reply.result?[member]?.elements?.compactMap(\.string)
    }

    private static func place(_ json: JSON?) -> CollectionPlace? {
        guard let backend = json?["backend"]?.string,
            let format = (json?["format"]?.string).flatMap(CollectionRule.Format.init)
        else { return nil }
        return CollectionPlace(backend: backend, format: format)
    }

    private static func places(_ list: JSON?) -> [CollectionPlace] { list?.elements?.compactMap(place) ?? [] }
}
