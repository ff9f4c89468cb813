import CRUDTestSupport

/// Drops.
extension Administrator {
    func drop(_ name: String, _ options: String, killing: Int?) throws {
        let isOfOriginals = options.contains("moved")
        let isIfEmpty = options.contains("ifEmpty")
        trace.add("drop \(options)", to: [name])
        let ticket = isOfOriginals || isIfEmpty ? nil : load.histories[name]?.beginDrop()
        let scan = load.histories[name]?.beginScan()
        if !isOfOriginals { feeds[name]?.mayEnd() }
        let params = #"{"collection":"\#(name)"\#(options)}"#
        guard case .reply(let reply) = try call("collection.drop", params, killing: killing) else {
            trace.add("killed during the drop", to: [name])
            return try startInForce()
        }
        trace.add("dropped: \(reply)", to: [name])
        let isDropped = reply.result?["dropped"]?.boolean
        if let scan {
            if isDropped == false && !isOfOriginals || isDropped == true && isIfEmpty {
                try load.histories[name]?.endScan(scan, found: [:])
            } else {
                try load.histories[name]?.endScan(scan)
            }
        }
        if let error = reply.error {
            let names = ["unavailable", "no_space", "outcome_unknown"] + (isIfEmpty ? ["record_exists"] : [])
            guard names.contains(error.name) else { throw Violation(description: "\(name): a drop: \(reply)") }
            if error.name == "outcome_unknown", let ticket { return openDrops.append((name, ticket)) }
        }
        if let ticket { try load.histories[name]?.endDrop(ticket, isDropped == true ? .done : .refused) }
        guard isDropped == true, reply.result?["removing"] == nil, !isIfEmpty else { return }
        if isOfOriginals, try whereabouts()[name]?.destination != nil { return }
        if !isOfOriginals {
            forgotten[name]?.subtract(leftovers[name] ?? [])
            if let place = served[name] { forgotten[name]?.remove(place) }
        }
        leftovers[name] = []
        if forgotten[name] ?? [] == [] { load.histories[name]?.forgetPast() }
    }

    /// A drop of a collection that is being moved, while the database that it leaves or that it goes to is locked, or
    /// its child hangs.
    func dropBesideFault() throws {
        let name = oneOf(names)
        let destinations = ["main", "other", "kid"].filter {
            $0 != served[name]?.backend && !mayHaveRecords(of: name, in: $0)
        }
        guard !destinations.isEmpty else { return try drop(name, #","moved":true"#, killing: nil) }
        let place = Place(oneOf(destinations), oneOf(Layout.formats))
        try reload(moving(name, to: place), move: true)
        _ = try load.run(on: daemon, replies: number(below: 30), within: .seconds(1))
        let backend = happens(oneIn: 2) ? place.backend : served[name]?.backend ?? place.backend
        if backend == "kid", happens(oneIn: 2) { try stopChild() } else { lock([backend]) }
        try drop(name, "", killing: nil)
        try heal()
        _ = try load.run(on: daemon, replies: number(below: 60), within: .seconds(1))
        try checkRecords(of: name)
        if happens(oneIn: 2) { try drop(oneOf(names), #","ifEmpty":true"#, killing: nil) }
        try checkPlaces(of: [name])
        try checkRecords(of: name)
    }
}
